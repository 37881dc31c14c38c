// Where the timeline draws what workers did.
import assert from "node:assert/strict";
import {join} from "node:path";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

const source = process.env.PAWL_SOURCE_DIR ?? process.cwd();
const {bars} = await import(pathToFileURL(join(source, "web/src/timeline_bars.js")));
const {revised} = await import(pathToFileURL(join(source, "web/src/revision.js")));

const ended = seconds => new Date(Date.UTC(2026, 10, 17) + 1000 * seconds).toISOString();
const stage = (kind, seconds, begin) => ({stage: `STAGE_${kind}`, seconds, ...(begin === undefined ? {} : {begin})});
const shown = made => made.map(({row, kind, begin, end}) => [row, kind.replace("STAGE_", ""), Number(begin.toFixed(3)), Number(end.toFixed(3))]);

test("stages stand where they began, with the gaps between them", () => {
  const {rows, byClock, made} = bars([
    {number: 0, worker: "workers/a", endTime: ended(10), stages: [stage("BUILD", 1, 0), stage("VALIDATE", 3, 2), stage("MEASURE", 2, 8)]},
  ]);
  assert.ok(byClock);
  assert.deepEqual(rows, [{worker: "workers/a", beside: false, slots: 1}]);
  assert.deepEqual(shown(made), [[0, "BUILD", 0, 1], [0, "VALIDATE", 2, 5], [0, "MEASURE", 8, 10]]);
});

test("what went on beside a trial has a row of its own below the worker's, in as many slots as things at once", () => {
  const ahead = (begin, seconds, parent, variable, to) => ({kind: "BUILD_AHEAD", begin, seconds, parent, change: {variable, from: 1, to}});
  const {rows, made} = bars([
    {number: 1, parent: 0, worker: "workers/a", endTime: ended(6), stages: [stage("BUILD", 1, 0), stage("VALIDATE", 3, 1), stage("MEASURE", 2, 4)],
     beside: [{kind: "SANITIZER", begin: 1.5, seconds: 2}, ahead(2, 1, 1, "TILE", 4), ahead(4, 1, 0, "TILE", 8)]},
    {number: 2, parent: 1, worker: "workers/a", endTime: ended(8), builtAhead: true, change: {variable: "TILE", from: 1, to: 4},
     stages: [stage("MEASURE", 1, 0)], beside: [ahead(-1.5, 1, 2, "TILE", 2)]},
  ]);
  assert.deepEqual(rows, [{worker: "workers/a", beside: false, slots: 1}, {worker: "workers/a", beside: true, slots: 2}]);
  assert.deepEqual(shown(made.filter(bar => bar.row === 1)),
    [[1, "SANITIZER", 1.5, 3.5], [1, "BUILD_AHEAD", 2, 3], [1, "BUILD_AHEAD", 4, 5], [1, "BUILD_AHEAD", 5.5, 6.5]]);
  assert.deepEqual(made.filter(bar => bar.row === 1).map(bar => bar.slot), [0, 1, 0, 0]);
  assert.deepEqual(made.filter(bar => bar.kind === "BUILD_AHEAD").map(bar => bar.used), [true, false, false],
    "used where a later iteration of this parent and change was built ahead");
});

test("what a later trial did for a variant stands in the row of the worker that ran it", () => {
  const {rows, made} = bars([
    {number: 0, worker: "workers/a", endTime: ended(4), stages: [stage("BUILD", 2, 0), stage("VALIDATE", 2, 2)],
     beside: [{kind: "SANITIZER", begin: 5, seconds: 2}, {kind: "TOTAL", begin: 8, seconds: 1, worker: "workers/b"}]},
  ]);
  assert.deepEqual(rows.map(row => [row.worker, row.beside]), [["workers/a", false], ["workers/b", false]]);
  assert.deepEqual(shown(made), [[0, "BUILD", 0, 2], [0, "VALIDATE", 2, 4], [0, "SANITIZER", 5, 7], [1, "TOTAL", 8, 9]]);
});

test("what a later trial did is added once to an iteration that is there", () => {
  const beside = [{kind: "BUILD_AHEAD", begin: 1, seconds: 1}], later = {kind: "SANITIZER", begin: 5, seconds: 2};
  const judged = {number: 3, verdict: "KEPT", reason: "faster", timeUs: 7, speedupOverStart: 2, beside};
  const rejected = {number: 3, verdict: "REJECTED", reason: "faster; but a race", failure: {message: "a race"}, beside: [later]};
  const once = revised(judged, rejected);
  assert.deepEqual([once.verdict, once.reason, once.failure.message, once.timeUs, once.speedupOverStart], ["REJECTED", "faster; but a race", "a race", 7, undefined]);
  assert.deepEqual(once.beside, [...beside, later]);
  assert.deepEqual(revised(once, rejected), once, "it came again");
});

test("edits that were built ahead are told apart by their names", () => {
  const ahead = name => ({kind: "BUILD_AHEAD", begin: 1, seconds: 1, parent: 0, change: {source: {name}}});
  const {made} = bars([
    {number: 1, parent: 0, worker: "workers/a", endTime: ended(6), stages: [stage("MEASURE", 2, 4)], beside: [ahead("tile"), ahead("unroll")]},
    {number: 2, parent: 0, worker: "workers/a", endTime: ended(8), builtAhead: true, change: {source: {name: "unroll", patch: "..."}}, stages: [stage("MEASURE", 1, 0)]},
  ]);
  assert.deepEqual(made.filter(bar => bar.kind === "BUILD_AHEAD").map(bar => [bar.change.source.name, bar.used]), [["tile", false], ["unroll", true]]);
});

test("a trial that was built while another was measured has its build in the row below", () => {
  const {made} = bars([
    {number: 1, worker: "workers/a", endTime: ended(5), stages: [stage("BUILD", 1, 0), stage("MEASURE", 4, 1)]},
    {number: 2, worker: "workers/a", endTime: ended(7), stages: [stage("BUILD", 2, 0), stage("MEASURE", 2, 3)]},
  ]);
  assert.deepEqual(shown(made), [[0, "BUILD", 0, 1], [0, "MEASURE", 1, 5], [0, "MEASURE", 5, 7], [1, "BUILD", 2, 4]]);
});

test("the start of what began before the first lease is the start of the axis", () => {
  const {made} = bars([{number: 0, worker: "w", endTime: ended(3), stages: [stage("MEASURE", 3, 0)], beside: [{kind: "PYTHON_START", begin: -2, seconds: 4}]}]);
  assert.deepEqual(shown(made), [[0, "MEASURE", 2, 5], [1, "PYTHON_START", 0, 4]]);
});

test("stages of earlier versions, which do not say when they began, stand one after another before the end", () => {
  const {rows, byClock, made} = bars([
    {number: 0, worker: "workers/a", endTime: ended(10), stages: [stage("BUILD", 1), stage("MEASURE", 2)]},
    {number: 1, worker: "workers/a", endTime: ended(14), stages: [stage("BUILD", 1), stage("MEASURE", 1)]},
  ]);
  assert.ok(byClock);
  assert.equal(rows.length, 1);
  assert.deepEqual(shown(made), [[0, "BUILD", 0, 1], [0, "MEASURE", 1, 3], [0, "BUILD", 5, 6], [0, "MEASURE", 6, 7]]);
});

test("trials of a replay, which is faster than its recording, stand one after another", () => {
  const {byClock, made} = bars([
    {number: 0, worker: "workers/a", endTime: ended(0.1), stages: [stage("BUILD", 1), stage("MEASURE", 2)]},
    {number: 1, worker: "workers/a", endTime: ended(0.2), stages: [stage("BUILD", 1)]},
  ]);
  assert.ok(!byClock);
  assert.deepEqual(shown(made), [[0, "BUILD", 0, 1], [0, "MEASURE", 1, 3], [0, "BUILD", 3, 4]]);
});

test("each worker has its own rows", () => {
  const {workers, rows} = bars([
    {number: 0, worker: "workers/b", endTime: ended(3), stages: [stage("MEASURE", 1, 0)], beside: [{kind: "BUILD_AHEAD", begin: 0, seconds: 1}]},
    {number: 1, worker: "workers/a", endTime: ended(3), stages: [stage("MEASURE", 1, 0)]},
  ]);
  assert.deepEqual(workers, ["workers/a", "workers/b"]);
  assert.deepEqual(rows.map(row => [row.worker, row.beside]), [["workers/a", false], ["workers/b", false], ["workers/b", true]]);
});
