// What a later result makes of an iteration that was judged before (RevisedIteration). Without a page: tests/web/timeline_test.mjs
// reads it too.

export function revised(iteration, {verdict, reason, speedupOverStart, speedupOverBaseline, failure, timeUs, beside = []}) {
  // An event may come after the iteration was loaded with it.
  const there = new Set((iteration.beside ?? []).map(one => JSON.stringify(one)));
  const added = beside.filter(one => !there.has(JSON.stringify(one)));
  return {...iteration, verdict, reason, speedupOverStart, speedupOverBaseline, failure: failure ?? iteration.failure, timeUs: timeUs || iteration.timeUs,
          beside: [...iteration.beside ?? [], ...added]};
}
