// Learn: the lectures as a tour, with what they talk about running beside them; one page per algorithm.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { algorithm, catalogue, type Explanation, explain, family } from "../model/catalogue";
import { of } from "../model/challenges";
import { answer, EXERCISES, type Exercise } from "../model/exercises";
import { type Lecture, lectures } from "../model/lectures";
import { go, here, ofRun, type Place, write } from "../model/link";
import { first } from "../model/presets";
import { Session } from "../model/session";
import { type Command, parseCommand, placeOf } from "../model/typed";
import { Icon } from "../parts/icons";
import { sentence } from "../parts/inspector";
import { useKeys } from "../parts/keyboard";
import { type Forms, inline, Markdown } from "../parts/markdown";
import { solve, solved } from "../parts/progress";
import { Stage } from "../parts/stage";
import { Copy } from "../parts/ui";
import { Verdicts } from "../parts/verdicts";
import { t } from "../texts";
import { rounded } from "./run";

const session = new Session();
let shown = "";

export function LearnView() {
  const about = here.value.about;
  if (about === "") return <Contents />;
  const lecture = lectures.find((one) => one.id === about);
  if (lecture) return <LecturePage key={about} lecture={lecture} />;
  return <AlgorithmPage key={about} name={about} />;
}

function Contents() {
  const known = catalogue.value;
  const count = (lecture: Lecture) => (EXERCISES[lecture.id] ?? []).filter((one) => solved(one.id)).length;
  return (
    <div class="page learn">
      <header class="page-head">
        <h1>{t.learn.title}</h1>
        <p class="lead">{t.learn.lead}</p>
      </header>
      <ol class="lecture-cards">
        {lectures.map((lecture) => {
          const [number = "", ...title] = lecture.title.split(". ");
          const text = lecture.text.trim().split("\n\n")[0]!.replaceAll("\n", " ");
          const all = EXERCISES[lecture.id]?.length ?? 0;
          return (
            <li key={lecture.id}>
              <a href={`#/learn/${lecture.id}`} class="lecture-card">
                <span class="lecture-number">{number}</span>
                <span class="lecture-title">{title.join(". ")}</span>
                <span class="lecture-text">{inline(text)}</span>
                {all > 0 && count(lecture) > 0 && (
                  <span class="lecture-done">
                    <Icon name="check" size={14} /> {t.learn.progress(count(lecture), all)}
                  </span>
                )}
              </a>
            </li>
          );
        })}
      </ol>
      <section>
        <h2>{t.learn.algorithms}</h2>
        {known?.families.map((name) => (
          <div class="family-block" key={name}>
            <h3>{t.families[name] ?? name}</h3>
            <ul class="algorithm-list">
              {known.algorithms
                .filter((one) => family(one.name) === name)
                .map((one) => (
                  <li key={one.name}>
                    <a href={`#/learn/${one.name}`}>{one.name.split("/")[1]}</a>
                    <span class="quiet">{one.summary}</span>
                  </li>
                ))}
            </ul>
          </div>
        ))}
      </section>
    </div>
  );
}

/** Shows a place beside the text. */
function show(place: Place): void {
  const key = write(place);
  if (shown === key) return;
  shown = key;
  const question = { algorithm: place.about, words: ofRun(place.words) };
  if (place.view === "check") {
    void session.ask({ ...question, do: "check" }, 0).then(() => {
      const story = session.story.peek();
      if (story && shown === key) session.player.jump(0);
    });
  } else {
    void session.run(place.about, place.words, 0);
  }
}

/** What runs beside the text. */
function Beside({ place }: { place: Place | undefined }) {
  const report = session.answer.value?.["report"] as Record<string, unknown> | undefined;
  const story = session.story.value;
  const records = session.player.records.value;
  const result = report?.["result"] as string | undefined;
  return (
    <div class="beside">
      {session.refused.value && (
        <p class="refused" role="alert">
          {session.refused.value.reason}
        </p>
      )}
      {story || session.busy.value ? (
        <Stage session={session} small footer={<Verdicts session={session} />} />
      ) : (
        result && (
          <div class={`result ${result === "holds" ? "good" : "open"}`}>
            <p class="result-title">
              <Icon name={result === "holds" ? "check" : "minus"} size={26} />
              {result === "holds" ? t.check.holds : t.check.bounded}
            </p>
            <p>
              {result === "holds"
                ? t.check.holdsLong(Number(report!["states"]).toLocaleString("en"))
                : t.check.boundedLong(Number(report!["states"]).toLocaleString("en"))}
            </p>
          </div>
        )
      )}
      {story && (
        <p class="caption" aria-live="polite">
          {records > 0
            ? `${t.inspect.node(String(story.rNode[records - 1]! + 1))}: ${sentence(story, records - 1)}`
            : t.inspect.before}
        </p>
      )}
      {place && (
        <a class="open-full" href={write(place)}>
          {t.learn.open}: {place.about}
        </a>
      )}
    </div>
  );
}

function commandForms(current: string, choose: (command: Command, place: Place) => void): Forms {
  return {
    level: 2,
    commands: (lines) => {
      const commands = lines.map(parseCommand);
      if (commands.some((one) => !one)) return undefined;
      return (
        <ul class="commands">
          {commands.map((command) => {
            const place = placeOf(command!);
            return (
              <li key={command!.line}>
                {place ? (
                  <button
                    type="button"
                    class="command-button"
                    aria-pressed={current === write(place)}
                    onClick={() => choose(command!, place)}
                  >
                    <Icon name="play" size={16} />
                    <code>{command!.line.replace(/ --svg \S+/, "")}</code>
                    {command!.comment && <span class="quiet">{command!.comment}</span>}
                  </button>
                ) : (
                  <div class="command-button plain" title={t.learn.elsewhere}>
                    <code>{command!.line}</code>
                    {command!.comment && <span class="quiet">{command!.comment}</span>}
                    <Copy text={command!.line} />
                  </div>
                )}
              </li>
            );
          })}
        </ul>
      );
    },
    link: (target) => {
      const lecture = lectures.find((one) => target.endsWith(`${one.id}.md`));
      if (lecture) return `#/learn/${lecture.id}`;
      const known = target.match(/algorithms\.md#(\w+?)((?:[a-z]+-?)+)$/);
      return known ? "#/learn" : undefined;
    },
    image: () => null,
  };
}

function LecturePage({ lecture }: { lecture: Lecture }) {
  const chosen = useSignal<Place | undefined>(undefined);
  const answers = useSignal(false);
  const number = lectures.indexOf(lecture);
  // What the picture of the lecture was made with, or else its first command.
  const main = useMemo(() => {
    const lines = lecture.text.split("\n").map(parseCommand);
    const found = lines.find((one) => one && /--svg/.test(one.line) && placeOf(one)) ?? lines.find((one) => one && placeOf(one));
    return found ? placeOf(found) : undefined;
  }, [lecture.id]);
  useEffect(() => {
    chosen.value = main;
  }, [lecture.id]);
  useEffect(() => {
    if (catalogue.value && chosen.value && ["run", "check"].includes(chosen.value.view)) show(chosen.value);
  }, [chosen.value, catalogue.value !== undefined]);
  useKeys(session);
  const [text = "", hidden = ""] = lecture.text.split(/^---$/m);
  const forms = commandForms(chosen.value ? write(chosen.value) : "", (_, place) => {
    if (place.view === "run" || place.view === "check") chosen.value = place;
    else go(place);
  });
  const flaws = lecture.text
    .split("\n")
    .map(parseCommand)
    .filter((one) => one?.task === "check" && one.words.some(([name]) => name === "flaw"));
  return (
    <div class="lesson">
      <article class="lesson-text" tabIndex={0}>
        <p class="family">
          <a href="#/learn">{t.learn.lectures}</a>
        </p>
        <h1>{lecture.title}</h1>
        <Markdown text={text} forms={forms} />
        {flaws.length > 0 && (
          <section class="exercise">
            <h2>{t.learn.breakIt}</h2>
            <ul class="challenges">
              {flaws.map((one) => {
                const flaw = one!.words.find(([name]) => name === "flaw")![1];
                const known = of(one!.about).find((challenge) => challenge.flaw === flaw);
                if (!known) return null;
                return (
                  <li key={one!.line}>
                    <a
                      class="challenge"
                      href={write({ view: "play", about: one!.about, words: [...known.words, ["flaw", flaw]] })}
                    >
                      <span class="challenge-name">{flaw}</span>
                      <span class="quiet">{t.play.moves(known.steps)}</span>
                      {solved(`${one!.about} ${flaw}`) && <Icon name="check" size={16} />}
                    </a>
                  </li>
                );
              })}
            </ul>
          </section>
        )}
        {(EXERCISES[lecture.id] ?? []).map((exercise) => (
          <ExerciseCard key={exercise.id} exercise={exercise} show={(place) => (chosen.value = place)} />
        ))}
        {hidden && (
          <section class="answers">
            {answers.value ? (
              <Markdown text={hidden} forms={forms} />
            ) : (
              <button type="button" class="button" onClick={() => (answers.value = true)}>
                {t.learn.show}
              </button>
            )}
          </section>
        )}
        <nav class="lesson-nav" aria-label={t.learn.lectures}>
          {number > 0 && (
            <a class="button" href={`#/learn/${lectures[number - 1]!.id}`}>
              ← {lectures[number - 1]!.title.split(". ").slice(1).join(". ")}
            </a>
          )}
          {number < lectures.length - 1 && (
            <a class="button" href={`#/learn/${lectures[number + 1]!.id}`}>
              {lectures[number + 1]!.title.split(". ").slice(1).join(". ")} →
            </a>
          )}
        </nav>
      </article>
      <Beside place={chosen.value} />
    </div>
  );
}

function ExerciseCard({ exercise, show }: { exercise: Exercise; show: (place: Place) => void }) {
  const given = useSignal("");
  const measured = useSignal<number | undefined>(undefined);
  const right = useSignal(false);
  const check = async () => {
    const value = await answer(exercise);
    measured.value = value;
    // A mean may be a little off the formula, at the beginning and the end of a run.
    right.value = Math.abs(Number(given.value) - value) <= Math.max(0.06, Math.abs(value) * 0.02);
    if (right.value) solve(exercise.id);
    show({ view: "run", about: exercise.algorithm, words: exercise.words });
  };
  return (
    <section class="exercise" data-exercise={exercise.id}>
      <h2>
        {t.learn.predict}{" "}
        {solved(exercise.id) && (
          <span class="done">
            <Icon name="check" size={16} /> {t.learn.solved}
          </span>
        )}
      </h2>
      <p>{t.exercises[exercise.id]?.question}</p>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void check();
        }}
      >
        <input
          type="text"
          inputMode="decimal"
          aria-label={t.learn.yours}
          placeholder={t.learn.yours}
          onInput={(event) => (given.value = event.currentTarget.value)}
        />
        <button type="submit" class="button primary" disabled={given.value.trim() === ""}>
          {t.learn.check}
        </button>
      </form>
      {measured.value !== undefined && (
        <p class={`verdict-line ${right.value ? "good" : "bad"}`} role="status">
          <Icon name={right.value ? "check" : "cross"} size={16} />
          {right.value ? t.learn.right : t.learn.wrong} {t.learn.measured(rounded(measured.value))}{" "}
          {t.exercises[exercise.id]?.why}
        </p>
      )}
    </section>
  );
}

function AlgorithmPage({ name }: { name: string }) {
  const about = algorithm(name);
  const explanation = useSignal<Explanation | undefined>(undefined);
  useEffect(() => {
    if (!catalogue.value) return;
    explain(name).then(
      (found) => (explanation.value = found),
      () => {},
    );
  }, [name, catalogue.value !== undefined]);
  const place = about ? { view: "run", about: name, words: first(about) } : undefined;
  useEffect(() => {
    if (catalogue.value && place) show(place);
  }, [name, catalogue.value !== undefined]);
  useKeys(session);
  if (catalogue.value && !about) return <p class="empty">{t.nav.nothing}: {name}</p>;
  const text = explanation.value?.text ?? "";
  return (
    <div class="lesson">
      <article class="lesson-text" tabIndex={0}>
        <p class="family">
          <a href="#/learn">{t.families[family(name)] ?? family(name)}</a>
        </p>
        <h1>{name.split("/")[1]}</h1>
        <p class="row">
          <a class="button primary" href={`#/run/${name}`}>
            {t.learn.tryIt}
          </a>
          <a class="button" href={`#/check/${name}`}>
            {t.learn.checkIt}
          </a>
          <a class="button" href={`#/play/${name}`}>
            {t.learn.playIt}
          </a>
        </p>
        <Markdown text={text} forms={{ level: 2 }} />
        {about && (
          <>
            <h2>{t.learn.glance}</h2>
            <dl class="facts glance">
              <dt>{t.run.topology}</dt>
              <dd>{about.needs}</dd>
              <dt>{t.check.channels}</dt>
              <dd>{about.fifo ? t.check.fifo : t.check.unordered}</dd>
              <dt>{t.run.survives}</dt>
              <dd>{about.survives}</dd>
              {about.costs.map((cost) => (
                <div key={cost.what + cost.formula}>
                  <dt>{cost.what}</dt>
                  <dd>{cost.formula}</dd>
                </div>
              ))}
              {about.options.map((option) => (
                <div key={option.name}>
                  <dt>
                    <code>
                      --{option.name} {option.values}
                    </code>
                  </dt>
                  <dd>{option.help}</dd>
                </div>
              ))}
            </dl>
          </>
        )}
      </article>
      <Beside place={place} />
    </div>
  );
}

export const learned = session;
