// The line of the best variant so far, as report/journey_chart.cc draws it.

// Over the baseline where there is one, otherwise over the start.
export const overBaseline = campaign => campaign.baselineUs > 0;
export const speedupOf = (campaign, iteration) =>
  (overBaseline(campaign) ? iteration.speedupOverBaseline : iteration.speedupOverStart) ?? 0;

// [number, speedup] wherever a kept iteration is faster than all before it, and once more at the end. The line ends with the
// campaign's best variant, also where its last measurement is below an earlier estimate.
export function bestSoFar(campaign, iterations) {
  const steps = [];
  let best = 0;
  for (const iteration of iterations) {
    if (iteration.verdict !== "KEPT") continue;
    const number = iteration.number ?? 0, speedup = speedupOf(campaign, iteration);
    if (speedup > best || number === campaign.best) steps.push([number, best = speedup]);
    if (number === campaign.best) break;
  }
  const last = iterations.at(-1)?.number ?? 0;
  if (steps.length && steps.at(-1)[0] < last) steps.push([last, best]);
  return steps;
}
