// Your own: a trace of any system, judged and drawn. Nothing leaves the page.

import { useSignal } from "@preact/signals";
import { Session } from "../model/session";
import { Inspector } from "../parts/inspector";
import { useKeys } from "../parts/keyboard";
import { Stage } from "../parts/stage";
import { Verdicts } from "../parts/verdicts";
import { t } from "../texts";

const session = new Session();
const BYTES_MAX = 64 << 20;

/** Two nodes hold a lock at once, as a system of one's own may have logged it. */
const SAMPLE = [
  '{"quorate":1,"engine":"mine","algorithm":"mutex","nodes":3,"spec":{}}',
  '{"t":0,"n":1,"in":{"command":"Acquire"},"out":[{"send":"Ask","kind":"ASK","id":1,"to":[3]}]}',
  '{"t":400000,"n":2,"in":{"command":"Acquire"},"out":[{"send":"Ask","kind":"ASK","id":1,"to":[3]}]}',
  '{"t":1000000,"n":3,"in":{"receive":"Ask","kind":"ASK","from":1,"id":1},"out":[{"send":"Yes","kind":"YES","id":1,"to":[1]}]}',
  '{"t":1600000,"n":3,"in":{"receive":"Ask","kind":"ASK","from":2,"id":1},"out":[{"send":"Yes","kind":"YES","id":2,"to":[2]}]}',
  '{"t":2000000,"n":1,"in":{"receive":"Yes","kind":"YES","from":3,"id":1},"out":[{"emit":"Granted(None)"}]}',
  '{"t":2600000,"n":2,"in":{"receive":"Yes","kind":"YES","from":3,"id":2},"out":[{"emit":"Granted(None)"}]}',
  '{"t":4000000,"n":1,"in":{"command":"Release"}}',
  '{"t":4500000,"n":2,"in":{"command":"Release"}}',
  '{"end":true}',
  "",
].join("\n");

interface Finding {
  property: string;
  text: string;
  record: number;
}

export function TracesView() {
  const over = useSignal(false);
  const pasted = useSignal("");
  const name = useSignal("");
  useKeys(session);
  const open = async (text: string, from: string) => {
    name.value = from;
    await session.ask({ do: "open", text }, 0);
    const story = session.story.peek();
    if (story) session.player.jump(story.broken[0] ? story.broken[0].record + 1 : story.recordCount);
  };
  const take = async (files: FileList | null | undefined) => {
    const file = files?.[0];
    if (!file) return;
    if (file.size > BYTES_MAX) {
      session.refused.value = { argument: "", reason: t.traces.tooLarge };
      return;
    }
    await open(await file.text(), file.name);
  };
  const story = session.story.value;
  const answer = session.answer.value;
  const verified = answer?.["verified"] as { events: number; findings: Finding[] } | undefined;
  const unjudged = answer?.["unjudged"] as string | undefined;
  const drop = {
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      over.value = true;
    },
    onDragLeave: () => (over.value = false),
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      over.value = false;
      void take(event.dataTransfer?.files);
    },
  };
  if (!story) {
    return (
      <div class="page traces" {...drop}>
        <header class="page-head">
          <h1>{t.traces.title}</h1>
          <p class="lead">{t.traces.lead}</p>
        </header>
        {session.refused.value && (
          <p class="refused" role="alert">
            {session.refused.value.reason}
          </p>
        )}
        <label class={`drop${over.value ? " over" : ""}`}>
          <input type="file" class="hidden-file" onChange={(event) => void take(event.currentTarget.files)} />
          <strong>{over.value ? t.traces.drop : t.traces.choose}</strong>
          <span class="quiet">{t.traces.forms}</span>
        </label>
        <div class="paste">
          <label for="paste">{t.traces.paste}</label>
          <textarea
            id="paste"
            rows={8}
            spellcheck={false}
            onInput={(event) => (pasted.value = event.currentTarget.value)}
          />
          <div class="row">
            <button
              type="button"
              class="button primary"
              disabled={pasted.value.trim() === ""}
              onClick={() => void open(pasted.value, t.traces.paste)}
            >
              {t.traces.open}
            </button>
            <button type="button" class="button" onClick={() => void open(SAMPLE, t.traces.sample)}>
              {t.traces.sample}
            </button>
          </div>
        </div>
      </div>
    );
  }
  return (
    <div class="run wide" {...drop}>
      <div class="middle">
        <div class="trace-head">
          <h1>{name.value}</h1>
          <span class="quiet">{story.summary}</span>
          <button
            type="button"
            class="button"
            onClick={() => {
              session.clear();
              pasted.value = "";
            }}
          >
            {t.traces.close}
          </button>
        </div>
        {session.refused.value && (
          <p class="refused" role="alert">
            {session.refused.value.reason}
          </p>
        )}
        {unjudged && (
          <p class="note">
            {t.traces.unjudged} {unjudged}
          </p>
        )}
        <Stage session={session} footer={<Verdicts session={session} />} />
      </div>
      <Inspector session={session}>
        {verified && verified.findings.length > 0 && (
          <section class="card">
            <h3>{t.traces.judged(verified.events)}</h3>
            <ul class="plain findings">
              {verified.findings.map((finding) => (
                <li key={finding.property + finding.record}>
                  <button type="button" class="link-button" onClick={() => session.player.jump(finding.record + 1)}>
                    {finding.property.replaceAll("_", " ")}
                  </button>
                  : {finding.text}
                </li>
              ))}
            </ul>
          </section>
        )}
      </Inspector>
    </div>
  );
}

export const opened = session;
