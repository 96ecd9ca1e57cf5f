// A run that is looked at: its story, its cursor, what is selected in it.

import { computed, signal } from "@preact/signals";
import type { Spot } from "../draw/spacetime";
import { type Answer, Cancelled, type Engine, quick, Refused } from "../engine/engine";
import { ofRun, type Word } from "./link";
import { Player } from "./player";
import { Story, type Verdict } from "./story";

let slots = 0;

export class Session {
  readonly slot = `s${++slots}`;
  readonly player = new Player();
  readonly story = signal<Story | undefined>(undefined);
  readonly answer = signal<Answer | undefined>(undefined);
  readonly selected = signal<Spot | undefined>(undefined);
  readonly hovered = signal<Spot | undefined>(undefined);
  /** The record whose past or future is looked at. */
  readonly cone = signal<{ record: number; side: "past" | "future" } | undefined>(undefined);
  /** Kinds of messages that are not shown. */
  readonly hidden = signal<ReadonlySet<number>>(new Set());
  readonly refused = signal<{ argument: string; reason: string } | undefined>(undefined);
  readonly busy = signal(false);
  readonly progress = signal<Record<string, unknown> | undefined>(undefined);
  /** What has been asked last; answers to earlier questions are not shown. */
  private asked = 0;

  constructor(readonly engine: Engine = quick) {}

  readonly verdicts = computed<Verdict[]>(() => {
    const answer = this.answer.value;
    if (!answer) return [];
    const verified = answer["verified"] as { verdicts: Verdict[] } | undefined;
    return (answer["verdicts"] as Verdict[] | undefined) ?? verified?.verdicts ?? [];
  });

  /** The record that the inspector is about: the selected one, or the last that happened. */
  readonly record = computed(() => {
    const story = this.story.value;
    const selected = this.selected.value;
    if (!story) return -1;
    if (selected?.kind === "record") return selected.record;
    return this.player.records.value - 1;
  });

  readonly focus = computed(() => {
    const story = this.story.value;
    const cone = this.cone.value;
    if (!story || !cone || cone.record >= story.recordCount) return undefined;
    return cone.side === "past" ? story.past(cone.record) : story.future(cone.record);
  });

  /** Asks for a run and shows it from this record on; from the one that is shown if not given. */
  async ask(question: Record<string, unknown>, at?: number, pace?: number): Promise<boolean> {
    const number = ++this.asked;
    this.busy.value = true;
    this.progress.value = undefined;
    try {
      const answer = await this.engine.ask({ ...question, slot: this.slot }, (progress) => {
        this.progress.value = progress;
      });
      if (number !== this.asked) return false;
      this.refused.value = undefined;
      if (answer.columns["r_at"]) this.take(answer, at, pace);
      else this.answer.value = answer;
      return true;
    } catch (error) {
      if (number !== this.asked || error instanceof Cancelled) return false;
      this.refused.value =
        error instanceof Refused
          ? { argument: error.argument, reason: error.message }
          : { argument: "", reason: error instanceof Error ? error.message : String(error) };
      return false;
    } finally {
      if (number === this.asked) this.busy.value = false;
    }
  }

  private take(answer: Answer, at: number | undefined, pace: number | undefined): void {
    const story = new Story(answer);
    const records = at ?? Math.min(this.player.now, story.recordCount);
    this.selected.value = undefined;
    this.hovered.value = undefined;
    this.cone.value = undefined;
    if (this.story.peek()?.algorithm !== story.algorithm) this.hidden.value = new Set();
    const latency = (answer["latency"] as number | undefined) ?? usualPace(story);
    this.player.show(story, records, pace ?? latency);
    this.answer.value = answer;
    this.story.value = story;
  }

  run(algorithm: string, words: Word[], at?: number): Promise<boolean> {
    return this.ask({ do: "run", algorithm, words: ofRun(words) }, at);
  }

  /** Forgets what is looked at. */
  clear(): void {
    this.asked++;
    this.busy.value = false;
    this.story.value = undefined;
    this.answer.value = undefined;
    this.refused.value = undefined;
  }
}

/** The mean time of a message, where nobody says what it is. */
function usualPace(story: Story): number {
  if (story.inSteps) return 1;
  let [sum, count] = [0, 0];
  for (let a = 0; a < story.arrowCount; a++) {
    if (story.aSentBy[a]! < 0 || story.aEndBy[a]! < 0) continue;
    sum += story.aEnd[a]! - story.aSent[a]!;
    count++;
  }
  const span = story.end - story.start;
  return count > 0 && sum > 0 ? sum / count : Math.max(1e-6, span / 20);
}
