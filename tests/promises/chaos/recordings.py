"""What a replay worker measures for a trial, computed from the recording itself: worker/replay/ in Python."""
import gzip
import hashlib
import json
import math
import pathlib
import tomllib

WORD = (1 << 64) - 1
ROOT = pathlib.Path(__file__).resolve().parents[3]
PROCESS_SD = tomllib.loads((ROOT / "profiles/gpus/h200.toml").read_text())["noise"]["process_sd"]


def numbers(state):
    """SplitMix64."""
    while True:
        state = state + 0x9E3779B97F4A7C15 & WORD
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & WORD
        yield mixed ^ mixed >> 31


def variant_text(values):
    return " ".join(f"{name}={value}" for name, value in sorted(values.items()))


class Recording:
    def __init__(self, file):
        with gzip.open(file, "rt") as lines:
            self.header, *variants = [json.loads(line) for line in lines]
        self.bundle = self.header["bundle"]
        self.start = variant_text(self.header["start"]["values"])
        self.variants = {variant_text(each["variant"]["values"]): each for each in variants}
        self.speedups = {self.start: 0.0}
        self.residuals = {text: self._residuals(each) for text, each in self.variants.items()}

    @staticmethod
    def _mean(variant):
        pairs = variant.get("pairs", [])
        return sum(pair.get("logRatio", 0) for pair in pairs) / len(pairs) if pairs else 0.0

    def _residuals(self, variant):
        pairs, mean = variant.get("pairs", []), self._mean(variant)
        widen = math.sqrt(len(pairs) / (len(pairs) - 1)) if len(pairs) > 1 else 1
        return [(pair.get("logRatio", 0) - mean) * widen for pair in pairs]

    def log_speedup(self, text):
        """Over the start, along what each was measured beside."""
        way = []
        while text not in self.speedups:
            way.append(text)
            text = variant_text(self.variants[text].get("beside", self.header["start"])["values"])
        speedup = self.speedups[text]
        for text in reversed(way):
            speedup += self._mean(self.variants[text])
            self.speedups[text] = speedup
        return speedup

    def first_log_ratio(self, trial, variant, parent):
        """Of the first pair of the trial of this name. The noise is drawn by name and variants, so that nothing else has it."""
        seed = 0xCBF29CE484222325 ^ int(hashlib.sha256(trial.encode()).hexdigest()[:16], 16)
        for text in (variant, parent or ""):
            for byte in text.encode():
                seed = (seed ^ byte) * 0x100000001B3 & WORD
        # All pairs of a process are off by an effect of its own, nearly normal.
        of_process = numbers(seed)
        effect = (sum(next(of_process) % (1 << 30) / (1 << 30) for _ in range(12)) - 6) * PROCESS_SD
        beside = parent or variant
        noise = self.residuals[variant] + self.residuals[beside]
        drawn = noise[next(numbers(seed + 1)) % len(noise)] if noise else 0
        return self.log_speedup(variant) - self.log_speedup(beside) + effect + drawn
