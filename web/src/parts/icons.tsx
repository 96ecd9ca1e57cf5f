// Small drawings, all on a grid of 20, in the colour of the text around them.

import type { JSX } from "preact";

const PATHS: Record<string, JSX.Element> = {
  play: <path d="M6 4.5v11l9-5.5z" fill="currentColor" />,
  pause: <path d="M6 4.5h3v11H6zM11 4.5h3v11h-3z" fill="currentColor" />,
  forth: <path d="M5 4.5v11l7-5.5zM13.5 4.5h2v11h-2z" fill="currentColor" />,
  back: <path d="M15 4.5v11L8 10zM4.5 4.5h2v11h-2z" fill="currentColor" />,
  first: <path d="M15.5 4.5v11L10 10zM10 4.5v11L4.5 10z" fill="currentColor" />,
  last: <path d="M4.5 4.5v11L10 10zM10 4.5v11l5.5-5.5z" fill="currentColor" />,
  live: (
    <>
      <circle cx="10" cy="10" r="2" fill="currentColor" stroke="none" />
      <path d="M6.2 6.2a5.4 5.4 0 0 0 0 7.6M13.8 6.2a5.4 5.4 0 0 1 0 7.6M3.7 3.7a8.9 8.9 0 0 0 0 12.6M16.3 3.7a8.9 8.9 0 0 1 0 12.6" />
    </>
  ),
  cross: <path d="M5 5l10 10M15 5L5 15" />,
  globe: (
    <>
      <circle cx="10" cy="10" r="7" />
      <path d="M3 10h14M10 3c2.4 2 3.4 4.4 3.4 7s-1 5-3.4 7c-2.4-2-3.4-4.4-3.4-7s1-5 3.4-7z" />
    </>
  ),
  bolt: <path d="M11 2.5L4.5 11.5H10l-1 6 6.5-9H10z" fill="currentColor" stroke="none" />,
  up: <path d="M10 16V4.5M5 9l5-4.5L15 9" />,
  cut: (
    <>
      <circle cx="5.5" cy="14.5" r="2.3" />
      <circle cx="14.5" cy="14.5" r="2.3" />
      <path d="M7 12.6L14.5 3M13 12.6L5.5 3" />
    </>
  ),
  delay: <path d="M5.5 3h9M5.5 17h9M6.5 3c0 4 7 5 7 7s-7 3-7 7M13.5 3c0 4-7 5-7 7s7 3 7 7" />,
  copies: (
    <>
      <rect x="3.5" y="6.5" width="9" height="9" rx="1.5" />
      <path d="M7.5 6.5v-2a1 1 0 0 1 1-1h7a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-3" />
    </>
  ),
  dice: (
    <>
      <rect x="3.5" y="3.5" width="13" height="13" rx="3" />
      <circle cx="7.2" cy="7.2" r="1.2" fill="currentColor" stroke="none" />
      <circle cx="12.8" cy="12.8" r="1.2" fill="currentColor" stroke="none" />
      <circle cx="12.8" cy="7.2" r="1.2" fill="currentColor" stroke="none" />
      <circle cx="7.2" cy="12.8" r="1.2" fill="currentColor" stroke="none" />
    </>
  ),
  link: (
    <path d="M8.2 11.8l3.6-3.6M9 6.2l1.6-1.6a3.4 3.4 0 0 1 4.8 4.8L13.8 11M11 13.8l-1.6 1.6a3.4 3.4 0 0 1-4.8-4.8L6.2 9" />
  ),
  moon: <path d="M15.8 11.6A6.4 6.4 0 0 1 8.4 4.2a6.4 6.4 0 1 0 7.4 7.4z" />,
  sun: (
    <>
      <circle cx="10" cy="10" r="3.4" />
      <path d="M10 2.5v2M10 15.5v2M2.5 10h2M15.5 10h2M4.7 4.7l1.4 1.4M13.9 13.9l1.4 1.4M4.7 15.3l1.4-1.4M13.9 6.1l1.4-1.4" />
    </>
  ),
  search: (
    <>
      <circle cx="9" cy="9" r="5" />
      <path d="M12.8 12.8L17 17" />
    </>
  ),
  save: <path d="M10 3v9.5M5.8 8.5L10 12.8l4.2-4.3M4 16.5h12" />,
  plus: <path d="M10 4v12M4 10h12" />,
  minus: <path d="M4 10h12" />,
  fit: <path d="M3.5 7V3.5H7M13 3.5h3.5V7M16.5 13v3.5H13M7 16.5H3.5V13" />,
  settings: (
    <>
      <path d="M3 6h8M15 6h2M3 14h2M9 14h8" />
      <circle cx="13" cy="6" r="2" />
      <circle cx="7" cy="14" r="2" />
    </>
  ),
  down: <path d="M5 8l5 5 5-5" />,
  check: <path d="M4 10.5l4 4 8-9" />,
  undo: <path d="M7.5 4L3.5 8l4 4M4 8h8a4.5 4.5 0 0 1 0 9H9" />,
  help: (
    <>
      <circle cx="10" cy="10" r="7" />
      <path d="M7.8 8a2.2 2.2 0 1 1 3.3 1.9c-.8.5-1.1.9-1.1 1.8" />
      <circle cx="10" cy="14" r=".7" fill="currentColor" stroke="none" />
    </>
  ),
  book: <path d="M10 5.5C8.5 4 5.5 3.8 3.5 4.3v11c2-.5 5-.3 6.5 1.2 1.5-1.5 4.5-1.7 6.5-1.2v-11c-2-.5-5-.3-6.5 1.2zM10 5.5v11" />,
  run: <path d="M3 14h3l2.5-9 3 12 2.2-6H17" />,
  net: (
    <>
      <circle cx="10" cy="4.5" r="2" />
      <circle cx="4.5" cy="15" r="2" />
      <circle cx="15.5" cy="15" r="2" />
      <path d="M9.1 6.3l-3.6 7M10.9 6.3l3.6 7M6.5 15h7" />
    </>
  ),
  grid: <path d="M3.5 3.5h5v5h-5zM11.5 3.5h5v5h-5zM3.5 11.5h5v5h-5zM11.5 11.5h5v5h-5z" />,
  bars: <path d="M4 16V9M10 16V4M16 16v-5" stroke-width="2.4" />,
  hand: <path d="M6.5 10.5V5.2a1.2 1.2 0 0 1 2.4 0V9m0-4.8a1.2 1.2 0 0 1 2.4 0V9m0-3.6a1.2 1.2 0 0 1 2.4 0v6.1c0 3-1.7 5-4.4 5-2 0-3.2-.8-4.3-2.7l-1.8-3c-.7-1.2.8-2.2 1.7-1.2l1.6 1.9" />,
  file: <path d="M5.5 3h6l3.5 3.5V17h-9.5zM11.5 3v3.5H15" />,
  star: <path d="M10 3l2.1 4.6 5 .6-3.7 3.4 1 5L10 14.1 5.6 16.6l1-5L2.9 8.2l5-.6z" />,
};

export function Icon({ name, size = 20 }: { name: string; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {PATHS[name]}
    </svg>
  );
}
