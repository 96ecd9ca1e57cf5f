// What colours and shapes mean: beside the picture where there is room, and above it where there is not.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { t } from "../texts";

/** Says how much of the picture's height it takes away, whenever that changes. */
export function LegendList(props: { onInset: (inset: number) => void; children: ComponentChildren }) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    const target = list.current!;
    const observer = new ResizeObserver(() => {
      const isAbove = getComputedStyle(target).flexWrap === "wrap";
      props.onInset(isAbove ? target.offsetTop + target.offsetHeight : 0);
    });
    observer.observe(target);
    observer.observe(target.parentElement!);
    return () => observer.disconnect();
  }, []);
  return (
    <ul class="legend" aria-label={t.stage.legend} ref={list}>
      {props.children}
    </ul>
  );
}
