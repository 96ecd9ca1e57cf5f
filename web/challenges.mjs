// Finds out which planted mistakes the checker finds in how many steps, and in which small system, and
// writes the list that the page offers as challenges.
//
//   node challenges.mjs ENGINE

import { writeFileSync } from "node:fs";
import { engine } from "./test/engine.mjs";

const ask = await engine(process.argv[2]);
const STATES_MAX = "60000";
/** Systems that are tried, the simplest first. */
const TRIED = {
  mutex: ["nodes=2", "", "requests=2", "nodes=4", "losses=1", "crashes=1", "duplicates=1", "quorum=majority", "over=views crashes=1"],
  election: ["", "nodes=4", "ids=descending", "ids=random seed=3 nodes=4", "initiators=one", "crashes=1", "crashes=1 recoveries=1", "nodes=5"],
  group: ["nodes=2 senders=1", "senders=1", "messages=2 senders=1 nodes=2", "", "losses=1 senders=1", "losses=1", "duplicates=1 senders=1", "crashes=1", "messages=2"],
  detector: [],
};

const { algorithms } = await ask({ do: "catalogue" });
const list = [];
for (const { name, flaws } of algorithms) {
  for (const { name: flaw } of flaws) {
    let best;
    for (const text of TRIED[name.split("/")[0]] ?? []) {
      const words = text === "" ? [] : text.split(" ").map((pair) => pair.split("="));
      const question = { do: "check", slot: "x", algorithm: name };
      const limited = [...words, ["max-states", STATES_MAX]];
      const right = await ask({ ...question, words: limited });
      if (right.refused || right.broke || right.report.result !== "holds") continue;
      const wrong = await ask({ ...question, words: [...limited, ["flaw", flaw]] });
      const result = wrong.report?.result;
      if (result !== "violated" && result !== "deadlock") continue;
      // A starvation has no end at which somebody who schedules could see it.
      const hand = await ask({ do: "hand", slot: "y", algorithm: name, words: [...words, ["flaw", flaw]], moves: wrong.moves });
      if (!hand.violated) continue;
      const steps = wrong.moves.length;
      if (!best || steps < best.steps) best = { algorithm: name, flaw, words, steps, property: wrong.report.property };
      if (best && text !== "nodes=2") break;
    }
    if (best) list.push(best);
    console.log(name, flaw, best ? `${best.property} in ${best.steps}: ${best.words.map((w) => w.join("=")).join(" ")}` : "-");
  }
}
list.sort((a, b) => a.steps - b.steps);
const lines = list.map((one) => `  ${JSON.stringify(one)}`).join(",\n");
writeFileSync(new URL("src/model/challenges.json", import.meta.url), `[\n${lines}\n]\n`);
console.log(`${list.length} challenges`);
