// The line of the best variant so far.
import assert from "node:assert/strict";
import {join} from "node:path";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

const source = process.env.PAWL_SOURCE_DIR ?? process.cwd();
const {bestSoFar} = await import(pathToFileURL(join(source, "web/src/best_so_far.js")));

const iteration = (number, verdict, speedupOverBaseline) => ({number, verdict, speedupOverBaseline});

test("it rises with kept iterations and goes on to the last one", () => {
  const all = [iteration(0, "KEPT", 0.5), iteration(1, "REVERTED", 3), iteration(2, "KEPT", 1.2), iteration(3, "REJECTED", 0)];
  assert.deepEqual(bestSoFar({baselineUs: 5, best: 2}, all), [[0, 0.5], [2, 1.2], [3, 1.2]]);
});

test("it ends at the best variant's ratio as measured, also below an earlier estimate", () => {
  const all = [iteration(0, "KEPT", 0.5), iteration(1, "KEPT", 1.5), iteration(2, "KEPT", 1.45), iteration(3, "REVERTED", 1.4)];
  assert.deepEqual(bestSoFar({baselineUs: 5, best: 2}, all), [[0, 0.5], [1, 1.5], [2, 1.45], [3, 1.45]]);
});
