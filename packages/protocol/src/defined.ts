type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the keys whose value is undefined: optional means absent. */
export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
