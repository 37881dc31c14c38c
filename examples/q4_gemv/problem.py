"""A layer of a language model at decode, quantised as its export does it: groups of 32 weights share a scale."""
import torch

GROUP = 32


def inputs(sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    rows, columns = sizes["N"], sizes["K"]
    weights = torch.randn(rows, columns // GROUP, GROUP, generator=generator) * columns**-0.5
    scales = (weights.abs().amax(-1, keepdim=True) / 7).half()
    quantised = torch.clamp(torch.round(weights / scales.float()), -8, 7) + 8
    return {
        "weights": quantised.to(torch.uint8).view(rows, columns),  # one a byte: Pawl packs them
        "scales": scales.view(rows, columns // GROUP),
        "x": torch.randn(columns, generator=generator).half(),
    }


def reference(weights, scales, x):
    groups = weights.double().view(*scales.shape, GROUP) - 8
    return {"y": (groups * scales.double()[..., None]).view(weights.shape) @ x.double()}


def baseline(weights, scales, x):
    """What a model in PyTorch does without a kernel of its own."""
    groups = weights.view(*scales.shape, GROUP).half() - 8
    return {"y": (groups * scales[..., None]).view(weights.shape) @ x}
