// The page: its head, its views, and which of them one is in.

import { signal } from "@preact/signals";
import { type ComponentType, render } from "preact";
import { useEffect } from "preact/hooks";
import { load } from "./engine/engine";
import type { Target } from "./draw/topology";
import { catalogue, learn } from "./model/catalogue";
import { answers } from "./model/exercises";
import { lectures } from "./model/lectures";
import { here, speak } from "./model/link";
import { Finder, finder } from "./parts/finder";
import { Icon } from "./parts/icons";
import { isWriting } from "./parts/keyboard";
import { viewsOf } from "./parts/stage";
import { theme, turn } from "./parts/theme";
import { Dialog, IconButton, Menu } from "./parts/ui";
import { language, languages, t } from "./texts";
import { checked, CheckView } from "./views/check";
import { CompareView } from "./views/compare";
import { learned, LearnView } from "./views/learn";
import { lively, LiveView } from "./views/live";
import { played, PlayView } from "./views/play";
import { QuorumsView } from "./views/quorums";
import { measured, RunView } from "./views/run";
import { opened, TracesView } from "./views/traces";

type Name = "run" | "check" | "play" | "compare" | "quorums" | "learn" | "traces" | "live";

const VIEWS: [name: Name, icon: string, view: ComponentType][] = [
  ["run", "run", RunView],
  ["check", "check", CheckView],
  ["play", "hand", PlayView],
  ["compare", "bars", CompareView],
  ["quorums", "grid", QuorumsView],
  ["learn", "book", LearnView],
  ["traces", "file", TracesView],
  ["live", "live", LiveView],
];

const help = signal(false);
const word = signal("");

function Head({ view }: { view: string }) {
  return (
    <header class="head">
      <a class="skip" href="#main">
        {t.skip}
      </a>
      <a class="mark" href="#/run" aria-label={t.name}>
        <svg width="26" height="26" viewBox="0 0 26 26" aria-hidden="true">
          <path d="M13 6L5.5 19M13 6l7.5 13M5.5 19h15" stroke="currentColor" stroke-width="1.8" />
          <circle cx="13" cy="5.5" r="4" fill="currentColor" />
          <circle cx="5.5" cy="19.5" r="4" class="hollow" stroke="currentColor" stroke-width="1.8" />
          <circle cx="20.5" cy="19.5" r="4" fill="currentColor" />
        </svg>
        <span>quorate</span>
      </a>
      <nav aria-label={t.nav.menu}>
        {VIEWS.map(([name, icon]) => (
          <a key={name} href={`#/${name}`} aria-current={name === view ? "page" : undefined}>
            <Icon name={icon} size={18} />
            <span>{t.nav[name]}</span>
          </a>
        ))}
      </nav>
      <button type="button" class="find" onClick={() => (finder.value = true)} aria-label={t.nav.search}>
        <Icon name="search" size={16} />
        <span>{t.nav.searchShort}</span>
        <kbd aria-hidden="true" data-keys="Ctrl K" />
      </button>
      <IconButton icon="link" label={t.nav.share} onClick={share} />
      <IconButton icon={theme.value === "dark" ? "sun" : "moon"} label={t.nav.theme} onClick={turn} />
      <Menu
        icon="globe"
        label={t.nav.language}
        items={Object.entries(languages).map(([code, { name }]) => [name, () => speak(code)])}
      />
      <IconButton icon="help" label={t.keys.title} onClick={() => (help.value = true)} />
    </header>
  );
}

/** A link to what is seen, at the moment that is seen. */
function share(): void {
  let link = location.href;
  if (here.peek().view === "run") {
    const records = measured.player.now;
    link = link.replace(/([?&])at=\d+&?/, "$1").replace(/[?&]$/, "");
    link += `${link.includes("?") ? "&" : "?"}at=${records}`;
  }
  void navigator.clipboard?.writeText(link);
  history.replaceState(null, "", link);
  word.value = t.nav.shared;
  setTimeout(() => (word.value = ""), 1800);
}

function App() {
  const view = here.value.view === "home" ? "run" : here.value.view;
  const Found = VIEWS.find(([name]) => name === view)?.[2] ?? RunView;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        finder.value = true;
      } else if (event.key === "?" && !isWriting(event)) {
        help.value = true;
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  useEffect(() => {
    document.title = `${here.value.about || t.nav[view as "run"] || ""} · ${t.name}`;
  });
  return (
    <>
      <Head view={view} />
      <main id="main" class={`view view-${view}`} tabIndex={-1}>
        <Found />
      </main>
      <Finder />
      <Dialog title={t.keys.title} open={help.value} onClose={() => (help.value = false)} class="keys">
        <h2>{t.keys.title}</h2>
        <dl>
          {t.keys.list.map(([key, text]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
        <IconButton icon="cross" label={t.inspect.close} onClick={() => (help.value = false)} />
      </Dialog>
      <div class="toast" role="status" aria-live="polite">
        {word.value}
      </div>
    </>
  );
}

document.documentElement.lang = language;
void load();
void learn();
render(<App />, document.getElementById("page")!);
// For tests, and for those who want to know more.
Object.assign(window, {
  quorate: {
    session: measured,
    checked,
    played,
    learned,
    opened,
    live: lively,
    catalogue: () => catalogue.value,
    lectures: () => lectures.map((one) => one.id),
    answers,
    where: (target: Target) => viewsOf(measured).topology?.where(target),
    window: () => viewsOf(measured).spacetime?.window,
    firstPicture: 0,
  },
});
const first = measured.player.listen(() => {
  if (!measured.story.peek()) return;
  (window as unknown as { quorate: { firstPicture: number } }).quorate.firstPicture = performance.now();
  first();
});
