/** How packages with a program for each platform name this one. */
export function native(): string {
  return `${process.platform}-${process.arch}`;
}
