// Keys, wherever the reader is, unless somebody is writing.

import { useEffect } from "preact/hooks";
import type { Session } from "../model/session";
import { keys } from "./stage";

export function isWriting(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  if (!target) return false;
  const name = target.tagName;
  if (name === "TEXTAREA" || name === "SELECT" || target.isContentEditable) return true;
  return name === "INPUT" && (target as HTMLInputElement).type !== "checkbox";
}

export function useKeys(session: Session): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
      if (document.querySelector("dialog[open]")) return;
      const target = event.target as HTMLElement;
      // A space on a button presses it.
      if (event.key === " " && /^(BUTTON|SUMMARY|A|INPUT)$/.test(target.tagName)) return;
      if (keys(session, event)) event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [session]);
}
