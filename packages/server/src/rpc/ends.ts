/** What ends with its owner: processes, watches, logins. Nothing that was added is left when the owner is gone. */
export class Ends implements AsyncDisposable {
  readonly #things = new Set<AsyncDisposable>();
  #over: Promise<void> | undefined;

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** Answers how to forget it, once it has ended by itself. Whoever comes too late ends at once. */
  add(thing: AsyncDisposable): () => void {
    if (this.#over === undefined) this.#things.add(thing);
    else thing[Symbol.asyncDispose]().then(undefined, () => undefined);
    return () => void this.#things.delete(thing);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#over ??= Promise.allSettled([...this.#things].map((thing) => thing[Symbol.asyncDispose]())).then(() => {
      this.#things.clear();
    });
    return this.#over;
  }
}
