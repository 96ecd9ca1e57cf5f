// The monitors' verdicts at the cursor: what holds so far, and what was broken when and why.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { shortTime } from "../draw/spacetime";
import { algorithm, explain } from "../model/catalogue";
import type { Session } from "../model/session";
import { Fate, Phase, type Story } from "../model/story";
import { t } from "../texts";
import { Icon } from "./icons";
import { inline } from "./markdown";

export function Verdicts({ session }: { session: Session }) {
  const story = session.story.value;
  const records = session.player.records.value;
  const limits = useSignal("");
  const name = story?.algorithm ?? "";
  useEffect(() => {
    limits.value = "";
    if (!name.includes("/")) return;
    explain(name).then(
      (found) => {
        limits.value = (found.text.split(/^# Known limits$/m)[1] ?? "").split(/^# /m)[0]!.trim();
      },
      () => {},
    );
  }, [name]);
  if (!story) return null;
  const atEnd = records >= story.recordCount;
  const verdicts = session.verdicts.value;
  const shown = verdicts.length > 0 ? verdicts : fromStory(story);
  const seen = (property: string) =>
    story.broken.find((one) => one.property === property && one.record < records);
  const bad = shown.filter((one) => one.word === "violated" && (seen(one.property) || atEnd));
  const survives = algorithm(name)?.survives;
  const untested = shown
    .filter((one) => one.word === "not exercised")
    .map((one) => one.property.replaceAll("_", " "));
  return (
    <div class={`verdicts${bad.length > 0 ? " bad" : ""}`} role="status" aria-live="polite">
      <ul>
        {shown
          .filter((one) => one.word !== "not claimed" && one.word !== "not exercised")
          .map((one) => {
            const broken = one.word === "violated" && (seen(one.property) !== undefined || atEnd);
            const word = broken
              ? t.verdict["violated"]
              : atEnd
                ? (t.verdict[one.word] ?? one.word)
                : t.verdict["soFar"];
            const state = broken ? "bad" : atEnd && one.word !== "ok" ? "open" : "good";
            const first = story.broken.find((it) => it.property === one.property);
            return (
              <li key={one.property} class={state}>
                <button
                  type="button"
                  disabled={!first}
                  onClick={() => {
                    if (first) session.player.jump(first.record + 1);
                  }}
                >
                  <Icon name={state === "bad" ? "cross" : state === "open" ? "minus" : "check"} size={14} />
                  <span>{one.property.replaceAll("_", " ")}</span>
                  {state !== "good" && <span class="word">{word}</span>}
                </button>
              </li>
            );
          })}
        {shown.some((one) => one.word === "ok") && bad.length === 0 && (
          <li class="untested">{atEnd ? t.verdict["hold"] : t.verdict["holdSoFar"]}</li>
        )}
        {untested.length > 0 && (
          <li class="untested">
            {untested.join(", ")}: {t.verdict["not exercised"]}
          </li>
        )}
      </ul>
      {bad.length > 0 && (
        <div class="why">
          {bad.map((one) => {
            const at = one.at ?? story.rAt[seen(one.property)?.record ?? story.recordCount - 1];
            return (
              <p key={one.property}>
                <strong>{one.property.replaceAll("_", " ")}</strong> {t.verdict["at"]}{" "}
                {shortTime(at ?? 0, true)}: {one.text || seen(one.property)?.text}
              </p>
            );
          })}
          {blocked(story).map((line) => (
            <p key={line}>{line}</p>
          ))}
          {survives && story.engine === "sim" && (
            <p class="quiet">
              {t.verdict["limits"]} {t.run.survives.toLowerCase()} {survives}.{" "}
              {limits.value && inline(limits.value.split("\n\n")[0]!.replaceAll("\n", " "))}
            </p>
          )}
        </div>
      )}
    </div>
  );
}

function fromStory(story: Story) {
  return story.broken.map((one) => ({
    property: one.property,
    word: "violated",
    at: story.rAt[one.record]!,
    text: one.text,
  }));
}

/** Why those who wait at the end do so: whom they miss, and what became of what was sent. */
function blocked(story: Story): string[] {
  const end = story.recordCount;
  const waiting: number[] = [];
  const down: number[] = [];
  for (let node = 0; node < Math.min(story.nodes, 200); node++) {
    const doing = story.doing(node, end);
    if (doing.down) down.push(node);
    else if (doing.phase === Phase.Wanting) waiting.push(node);
  }
  if (waiting.length === 0) return [];
  const lines: string[] = [];
  const list = (nodes: number[]) => {
    const numbers = nodes.map((node) => node + 1);
    const shown = numbers.slice(0, 8).join(", ");
    return numbers.length > 8 ? shown + t.blocked.more(numbers.length - 8) : shown;
  };
  for (const node of down) {
    const outage = story.outages.find((it) => it.node === node && it.until === null);
    const kinds = new Set<string>();
    let lost = 0;
    for (let a = 0; a < story.arrowCount; a++) {
      if (story.aTo[a] !== node || story.aFate[a] !== Fate.Lost) continue;
      lost++;
      kinds.add(story.kinds[story.aKind[a]!]!);
    }
    const what = lost > 0 ? t.blocked.lostTo(lost, [...kinds].join(", ")) : "";
    lines.push(t.blocked.down(node + 1, shortTime(outage?.from ?? 0, true), what, list(waiting)));
  }
  if (down.length > 0) return lines;
  const lost: number[] = [];
  for (let a = 0; a < story.arrowCount; a++) if (story.aFate[a] === Fate.Lost) lost.push(a);
  if (lost.length === 0) return [t.blocked.each(list(waiting))];
  const what = lost
    .slice(0, 3)
    .map((a) => t.blocked.one(story.message(a), story.aFrom[a]! + 1, story.aTo[a]! + 1))
    .join("; ");
  const more = lost.length > 3 ? t.blocked.more(lost.length - 3) : "";
  return [t.blocked.lost(what + more, list(waiting))];
}
