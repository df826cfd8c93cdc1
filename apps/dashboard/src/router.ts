/** Addresses: what is looked at is in them, so that a link leads anybody to the same thing. */
import { useSyncExternalStore } from "react";

export interface Place {
  readonly path: string;
  readonly query: URLSearchParams;
}

let place: Place = typeof location === "undefined" ? { path: "/", query: new URLSearchParams() } : here();
const listeners = new Set<() => void>();

export function usePlace(): Place {
  return useSyncExternalStore(subscribe, current, current);
}

/** A move to another thing: Back leads here again. */
export function go(to: string): void {
  history.pushState(null, "", to);
  changed();
}

/** Another look at the same thing. */
export function replace(to: string): void {
  history.replaceState(null, "", to);
  changed();
}

/** undefined removes a key. */
export function look(changes: Readonly<Record<string, string | undefined>>): void {
  const query = new URLSearchParams(place.query);
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  replace(`${place.path}${text === "" ? "" : `?${text}`}`);
}

function current(): Place {
  return place;
}

function here(): Place {
  return { path: decoded(location.pathname), query: new URLSearchParams(location.search) };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function changed(): void {
  place = here();
  for (const heard of listeners) heard();
}

function subscribe(heard: () => void): () => void {
  listeners.add(heard);
  return () => listeners.delete(heard);
}

// A run that is drawn as a file has no address.
if (typeof location !== "undefined") addEventListener("popstate", changed);
