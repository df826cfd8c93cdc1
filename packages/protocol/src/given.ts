/** Fields that may be undefined become optional. */
type Given<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Without the fields that are undefined: optional means absent. */
export function given<T extends object>(fields: T): Given<T> {
  // Only undefined values are dropped, and the type makes exactly those fields optional.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>;
}
