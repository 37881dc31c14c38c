// What each worker did when, as bars. Without a page: tests/web/timeline_test.mjs reads it too.

// Stages that keep the GPU; the others may go on beside those of another trial.
const ON_GPU = new Set(["STAGE_VALIDATE", "STAGE_MEASURE", "STAGE_PROFILE", "TOTAL", "END"]);

// Of those in a worker's own row, where compute-sanitizer has a trial of its own.
const onTheGpu = ({kind}) => ON_GPU.has(kind) || kind === "SANITIZER";

const lengthOf = iteration => (iteration.stages ?? []).reduce((sum, stage) => sum + (stage.seconds ?? 0), 0);
// Versions before the one that added `begin` did not say when a stage began, and neither does a replay.
const hasBegins = iteration => iteration.stages.every(stage => stage.begin !== undefined);
// Of the end, since the lease of the trial where it is known.
const endOf = iteration => hasBegins(iteration) ? Math.max(...iteration.stages.map(stage => stage.begin + (stage.seconds ?? 0))) : lengthOf(iteration);
// compute-sanitizer after the stages has a trial of its own.
const keepsGpu = ({kind, begin = 0}, iteration) => ON_GPU.has(kind) || (kind === "SANITIZER" && begin >= endOf(iteration));
const keyOf = (parent, change) => `${parent ?? 0} ` + (change?.source ? `edit ${change.source.name}` : `${change?.variable} ${change?.toWord || change?.to}`);

// {rows, byClock, made}. A row is {worker, beside, slots}: the worker's own row has the stages of its trials; the one below it, where
// there is any, has what went on beside them, in as many slots as there were things at once. A bar is {row, slot, begin, end, kind,
// iteration}, in seconds; `kind` is a stage, or a BesideTime's with `change`, `parent` and `used`. By the clock where the stages say
// when they began, or fit into the time between the iterations; a replay is faster than what it replays, and its trials then stand
// one after another.
export function bars(iterations) {
  const trials = iterations.filter(iteration => iteration.endTime && lengthOf(iteration) > 0);
  const workerOf = (iteration, one = {}) => one.worker || (iteration.worker ?? "");
  const workers = [...new Set(trials.flatMap(iteration => [workerOf(iteration), ...(iteration.beside ?? []).map(one => workerOf(iteration, one))]))].sort();
  const endTime = iteration => Date.parse(iteration.endTime) / 1000;
  const leaseTime = iteration => endTime(iteration) - endOf(iteration);
  const first = Math.min(...trials.map(leaseTime));
  const span = Math.max(...trials.map(endTime)) - first;
  const without = trials.filter(iteration => !hasBegins(iteration));
  const busiest = Math.max(0, ...workers.map(worker =>
    without.filter(iteration => (iteration.worker ?? "") === worker).reduce((sum, iteration) => sum + lengthOf(iteration), 0)));
  const byClock = busiest <= span * 1.02 + 0.5;
  const tried = new Set(trials.filter(iteration => iteration.builtAhead).map(iteration => keyOf(iteration.parent, iteration.change)));
  const lanes = new Map(workers.map(worker => [worker, {own: [], beside: [], free: 0}]));
  for (const iteration of [...trials].sort((a, b) => (a.number ?? 0) - (b.number ?? 0))) {
    const lane = lanes.get(workerOf(iteration)), clocked = byClock && hasBegins(iteration), lease = leaseTime(iteration) - first;
    let at = byClock ? lease : lane.free;
    for (const stage of iteration.stages) {
      if (clocked) at = lease + stage.begin;
      lane.own.push({begin: at, end: at + (stage.seconds ?? 0), kind: stage.stage, iteration});
      at += stage.seconds ?? 0;
    }
    lane.free = at;
    for (const one of clocked ? iteration.beside ?? [] : []) {
      const {kind, begin = 0, seconds = 0, parent, change} = one, there = lanes.get(workerOf(iteration, one));
      (keepsGpu(one, iteration) ? there.own : there.beside).push({begin: lease + begin, end: lease + begin + seconds, kind, iteration, parent, change,
                                                                  used: tried.has(keyOf(parent, change))});
    }
  }
  const rows = [], made = [];
  for (const [worker, {own, beside}] of lanes) {
    const onGpu = own.filter(onTheGpu).sort((a, b) => a.begin - b.begin);
    const hidden = new Set(own.filter(bar => !onTheGpu(bar) && overlaps(onGpu, bar)));  // a trial that was built while another was measured
    made.push(...own.filter(bar => !hidden.has(bar)).map(bar => ({...bar, row: rows.length, slot: 0})));
    rows.push({worker, beside: false, slots: 1});
    const below = inSlots([...beside, ...hidden]);
    if (below.length === 0) continue;
    made.push(...below.map(bar => ({...bar, row: rows.length})));
    rows.push({worker, beside: true, slots: Math.max(...below.map(bar => bar.slot)) + 1});
  }
  // What began before the first trial was leased moves all to the right.
  const early = Math.min(0, ...made.map(bar => bar.begin));
  for (const bar of made) bar.begin -= early, bar.end -= early;
  return {workers, rows, byClock, made};
}

// Whether a bar lies over one of `sorted`, which do not lie over each other.
function overlaps(sorted, bar) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle].end <= bar.begin) low = middle + 1;
    else high = middle;
  }
  return low < sorted.length && sorted[low].begin < bar.end;
}

// Each in the first slot that is free when it begins.
function inSlots(list) {
  const ends = [];
  return [...list].sort((a, b) => a.begin - b.begin).map(bar => {
    let slot = ends.findIndex(end => end <= bar.begin);
    if (slot < 0) slot = ends.length;
    ends[slot] = bar.end;
    return {...bar, slot};
  });
}
