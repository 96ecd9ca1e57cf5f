// Find anything by its name: algorithms, lectures, views.

import { signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { catalogue, family } from "../model/catalogue";
import { lectures } from "../model/lectures";
import { here } from "../model/link";
import { t } from "../texts";
import { Icon } from "./icons";
import { Dialog } from "./ui";

export const finder = signal(false);

interface Found {
  name: string;
  more: string;
  group: string;
  link: string;
}

function everything(): Found[] {
  const view = ["check", "play"].includes(here.value.view) ? here.value.view : "run";
  const found: Found[] = (catalogue.value?.algorithms ?? []).map((one) => ({
    name: one.name,
    more: one.summary,
    group: t.families[family(one.name)] ?? family(one.name),
    link: `#/${view}/${one.name}`,
  }));
  for (const lecture of lectures) {
    found.push({ name: lecture.title, more: "", group: t.learn.lectures, link: `#/learn/${lecture.id}` });
  }
  for (const view of ["run", "check", "play", "compare", "quorums", "learn", "traces", "live"] as const) {
    found.push({ name: t.nav[view], more: "", group: t.nav.menu, link: `#/${view}` });
  }
  return found;
}

export function Finder() {
  const query = useSignal("");
  const chosen = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  // Whoever types right after the key that opens it is not to lose a letter.
  useLayoutEffect(() => {
    if (finder.value) {
      query.value = "";
      chosen.value = 0;
      input.current?.focus();
    }
  }, [finder.value]);
  const parts = query.value.toLowerCase().split(/\s+/);
  const found = everything().filter((one) => {
    const text = `${one.name} ${one.more} ${one.group}`.toLowerCase();
    return parts.every((part) => text.includes(part));
  });
  const take = (one: Found | undefined) => {
    if (!one) return;
    finder.value = false;
    location.hash = one.link;
  };
  const move = (by: number) => {
    chosen.value = Math.max(0, Math.min(found.length - 1, chosen.value + by));
    list.current?.querySelectorAll("li[role=option]")[chosen.value]?.scrollIntoView({ block: "nearest" });
  };
  let group = "";
  return (
    <Dialog title={t.nav.search} open={finder.value} onClose={() => (finder.value = false)} class="finder">
      <div class="finder-input">
        <Icon name="search" />
        <input
          ref={input}
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          aria-activedescendant={found.length > 0 ? `found-${chosen.value}` : undefined}
          aria-label={t.nav.search}
          placeholder={t.nav.search}
          onInput={(event) => {
            query.value = event.currentTarget.value;
            chosen.value = 0;
          }}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") move(1);
            else if (event.key === "ArrowUp") move(-1);
            else if (event.key === "Enter") take(found[chosen.value]);
            else return;
            event.preventDefault();
          }}
        />
      </div>
      <ul id="found" role="listbox" aria-label={t.nav.search} ref={list}>
        {found.map((one, i) => {
          const head = one.group !== group ? one.group : undefined;
          group = one.group;
          return (
            <>
              {head && (
                <li class="group" role="presentation" key={`g${head}`}>
                  {head}
                </li>
              )}
              <li
                key={one.link + one.name}
                id={`found-${i}`}
                role="option"
                aria-selected={i === chosen.value}
                onClick={() => take(one)}
                onPointerMove={() => (chosen.value = i)}
              >
                <strong>{one.name.includes("/") ? one.name.split("/")[1] : one.name}</strong>
                <span>{one.more}</span>
              </li>
            </>
          );
        })}
        {found.length === 0 && <li class="group">{t.nav.nothing}</li>}
      </ul>
    </Dialog>
  );
}
