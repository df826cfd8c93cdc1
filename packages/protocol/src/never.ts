/** Ends an exhaustive switch: adding a variant without handling it fails to compile here. */
export function never(value: never): never {
  throw new Error(`unhandled variant: ${JSON.stringify(value)}`);
}
