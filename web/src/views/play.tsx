// Play: the reader is the scheduler. All that can happen next is there to be picked; a mistake is planted,
// and has to be brought to light.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Target } from "../draw/topology";
import { advising } from "../engine/engine";
import { algorithm, catalogue } from "../model/catalogue";
import { type Challenge, featured, of } from "../model/challenges";
import { go, here, ofRun, said, type Word, word } from "../model/link";
import { Session } from "../model/session";
import { Icon } from "../parts/icons";
import { Inspector } from "../parts/inspector";
import { useKeys } from "../parts/keyboard";
import { solve, solved } from "../parts/progress";
import { AlgorithmTitle, Refusal } from "../parts/settings";
import { Stage } from "../parts/stage";
import { Fold } from "../parts/ui";
import { t } from "../texts";

const session = new Session();
let shown = "";

interface Choice {
  move: string;
  what: string;
  node: number;
  from?: number;
  id?: number;
  peer?: number;
  words: string;
  fault: boolean;
}

interface Way {
  moves: string[];
  property: string;
}

export function PlayView() {
  const place = here.value;
  const challenge = featured[1] ?? featured[0];
  const name = place.about || challenge?.algorithm || "mutex/ricart-agrawala";
  const words = place.about === "" && challenge ? wordsOf(challenge) : place.words;
  const moves = (word(words, "moves") ?? "").split(",").filter((move) => move !== "");
  const key = JSON.stringify([name, words]);
  const way = useSignal<Way | undefined>(undefined);
  const hints = useSignal(0);
  const looking = useSignal(false);
  useEffect(() => {
    if (!catalogue.value || shown === key) return;
    shown = key;
    const asked = session.ask({ do: "hand", algorithm: name, words: ofRun(words), moves }, undefined, 1);
    void asked.then((done) => {
      const story = session.story.peek();
      if (done && story) session.player.jump(story.recordCount);
    });
  }, [key, catalogue.value !== undefined]);
  const setting = JSON.stringify([name, ofRun(words)]);
  useEffect(() => {
    way.value = undefined;
    hints.value = 0;
    looking.value = false;
  }, [setting]);
  useKeys(session);
  const answer = session.answer.value;
  const next = (answer?.["next"] as Choice[] | undefined) ?? [];
  const violated = answer?.["violated"] as { property: string; text: string } | null | undefined;
  const over = answer?.["over"] as boolean | undefined;
  const flaw = word(words, "flaw");
  const take = (move: string) => {
    go({ view: "play", about: name, words: said(words, "moves", [...moves, move].join(",")) }, true);
  };
  const back = (count: number) => {
    go({ view: "play", about: name, words: said(words, "moves", moves.slice(0, count).join(",")) }, true);
  };
  useEffect(() => {
    if (violated && flaw && moves.length > 0) solve(`${name} ${flaw}`);
  }, [violated?.property, flaw]);
  const find = async (): Promise<Way | undefined> => {
    if (way.value) return way.value;
    looking.value = true;
    try {
      const found = await advising.ask({ do: "check", slot: "way", algorithm: name, words: ofRun(words) });
      const report = found["report"] as Record<string, unknown>;
      if (found["moves"]) way.value = { moves: found["moves"] as string[], property: String(report["property"]) };
    } finally {
      looking.value = false;
    }
    return way.value;
  };
  const pick = (target: Target): boolean => {
    if (session.player.now !== session.story.peek()?.recordCount) return false;
    const story = session.story.peek()!;
    const found = next.filter((one) => {
      if (one.fault) return false;
      if (target.kind === "node") return one.node === target.node && one.what !== "deliver";
      if (target.kind !== "message") return false;
      const { arrow } = target;
      return (
        one.what === "deliver" &&
        one.from === story.aFrom[arrow] &&
        one.id === story.aId[arrow] &&
        one.node === story.aTo[arrow]
      );
    });
    if (found.length !== 1) return false;
    take(found[0]!.move);
    return true;
  };
  const choices = new Set(
    next.filter((one) => one.what === "deliver").map((one) => `${one.from}.${one.id}-${one.node}`),
  );
  return (
    <div class="run play">
      <div class="sheet">
        <Challenges name={name} flaw={flaw} words={words} />
      </div>
      <div class="middle">
        <Refusal session={session} />
        <Stage session={session} onPick={pick} choices={choices} />
      </div>
      <aside class="inspector scheduler" aria-label={t.play.next} tabIndex={0}>
        <section class="card" role="status" aria-live="polite">
          {violated ? (
            <div class="broken">
              <strong>
                {t.play.broken} {t.play.brokenIn(moves.length)}
              </strong>
              <p>
                {violated.property.replaceAll("_", " ")}: {violated.text}
              </p>
              {flaw && (
                <p>
                  {t.play.mistake} {algorithm(name)?.flaws.find((one) => one.name === flaw)?.answer}
                </p>
              )}
              {best(name, flaw) !== undefined && (
                <p>
                  {moves.length <= best(name, flaw)! ? t.play.asGood : `${t.play.shortest(best(name, flaw)!)}.`}
                </p>
              )}
            </div>
          ) : (
            <>
              <h2>{over ? t.play.nothing : t.play.next}</h2>
              {over && <p class="quiet">{t.play.ended}</p>}
            </>
          )}
        </section>
        {!violated && (
          <section class="card">
            <ul class="choices">
              {next
                .filter((one) => !one.fault)
                .map((one) => (
                  <ChoiceButton key={one.move} one={one} take={take} marked={way.value !== undefined && hints.value > 1 && way.value.moves[moves.length] === one.move} />
                ))}
            </ul>
            {next.some((one) => one.fault) && (
              <Fold title={t.play.faults}>
                <ul class="choices">
                  {next
                    .filter((one) => one.fault)
                    .map((one) => (
                      <ChoiceButton key={one.move} one={one} take={take} />
                    ))}
                </ul>
              </Fold>
            )}
          </section>
        )}
        <section class="card">
          <p class="moves">
            {t.play.moves(moves.length)}
            {best(name, flaw) !== undefined && <span class="quiet">, {t.play.shortest(best(name, flaw)!)}</span>}
          </p>
          <div class="row">
            <button type="button" class="button" disabled={moves.length === 0} onClick={() => back(moves.length - 1)}>
              <Icon name="undo" size={16} /> {t.play.undo}
            </button>
            <button type="button" class="button" disabled={moves.length === 0} onClick={() => back(0)}>
              {t.play.restart}
            </button>
          </div>
          {flaw && !violated && (
            <div class="row">
              <button
                type="button"
                class="link-button"
                onClick={() => {
                  hints.value++;
                  void find();
                }}
              >
                {t.play.hint}
              </button>
              <button
                type="button"
                class="link-button"
                onClick={() =>
                  void find().then((found) => {
                    if (!found) return;
                    go({ view: "play", about: name, words: said(words, "moves", found.moves.join(",")) }, true);
                  })
                }
              >
                {t.play.answer}
              </button>
            </div>
          )}
          {looking.value && <p class="quiet">{t.play.answering}</p>}
          {hints.value > 0 && !looking.value && !violated && (
            <p class="quiet">{way.value ? hint(way.value, hints.value, moves) : t.play.noCounter}</p>
          )}
        </section>
        <Inspector session={session} />
      </aside>
    </div>
  );
}

function wordsOf(challenge: Challenge): Word[] {
  return [...challenge.words, ["flaw", challenge.flaw]];
}

/** How many moves the checker needs, where that is known. */
function best(name: string, flaw: string | undefined): number | undefined {
  return of(name).find((one) => one.flaw === flaw)?.steps;
}

function hint(way: Way, level: number, moves: string[]): string {
  const property = way.property.replaceAll("_", " ");
  if (level === 1) return t.play.breaks(property);
  const so = moves.every((move, i) => move === way.moves[i]);
  return so ? t.play.onTheWay : t.play.begins(property, way.moves.slice(0, 2).join(t.play.then));
}

/** A message as the paper writes it: as it stands at its arrow. */
function messageOf(one: Choice): string {
  const story = session.story.value;
  if (!story) return one.words;
  for (let a = story.arrowCount - 1; a >= 0; a--) {
    if (story.aFrom[a] === one.from && story.aId[a] === one.id && story.aTo[a] === one.node) return story.message(a);
  }
  return one.words;
}

function ChoiceButton({ one, take, marked }: { one: Choice; take: (move: string) => void; marked?: boolean }) {
  const node = one.node + 1;
  const [icon, text, more] = (() => {
    switch (one.what) {
      case "deliver":
        return ["forth", messageOf(one), `${one.from! + 1} → ${node}`];
      case "lose":
        return ["cross", `${t.act.lose} ${messageOf(one)}`, `${one.from! + 1} → ${node}`];
      case "repeat":
        return ["copies", `${t.act.repeat} ${messageOf(one)}`, `${one.from! + 1} → ${node}`];
      case "command":
        return ["hand", one.words, t.inspect.aNode(node)];
      case "timer":
        return ["delay", one.words, t.inspect.aNode(node)];
      case "word":
        return ["help", t.play.isDown(one.peer! + 1, one.words.toLowerCase()), t.inspect.aNode(node)];
      case "crash":
        return ["bolt", t.act.crash, t.inspect.aNode(node)];
      default:
        return ["up", t.act.recover, t.inspect.aNode(node)];
    }
  })();
  return (
    <li>
      <button type="button" class={marked ? "marked" : ""} onClick={() => take(one.move)} data-move={one.move}>
        <Icon name={icon!} size={16} />
        <span class="choice-text">{text}</span>
        <span class="quiet">{more}</span>
      </button>
    </li>
  );
}

function Challenges({ name, flaw, words }: { name: string; flaw: string | undefined; words: Word[] }) {
  const mine = of(name);
  const others = featured.filter((one) => one.algorithm !== name);
  const item = (one: Challenge) => (
    <li key={one.algorithm + one.flaw}>
      <button
        type="button"
        class="challenge"
        aria-pressed={one.algorithm === name && one.flaw === flaw}
        onClick={() => go({ view: "play", about: one.algorithm, words: wordsOf(one) })}
      >
        <span class="challenge-name">{one.algorithm === name ? one.flaw : `${one.algorithm.split("/")[1]}: ${one.flaw}`}</span>
        <span class="quiet">{t.play.moves(one.steps)}</span>
        {solved(`${one.algorithm} ${one.flaw}`) && <Icon name="check" size={16} />}
      </button>
    </li>
  );
  return (
    <div class="settings" tabIndex={0} role="region" aria-label={t.play.challenges}>
      <p class="family">{t.play.title}</p>
      <AlgorithmTitle name={name} />
      <p class="summary">{flaw ? t.play.goal : t.play.lead}</p>
      <ul class="challenges">
        <li>
          <button
            type="button"
            class="challenge"
            aria-pressed={!flaw}
            onClick={() => go({ view: "play", about: name, words: said(said(words, "flaw", undefined), "moves", undefined) })}
          >
            <span class="challenge-name">{t.play.free}</span>
          </button>
        </li>
        {mine.map(item)}
      </ul>
      <Fold title={t.play.challenges} open>
        <ul class="challenges">{others.map(item)}</ul>
      </Fold>
      <p>
        <a href={`#/learn/${name}`}>{t.run.about}</a>
      </p>
    </div>
  );
}

export const played = session;
