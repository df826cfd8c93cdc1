/** What ends with a connection: processes, watches, logins. */
export class Ends implements AsyncDisposable {
  readonly #things = new Set<AsyncDisposable>();
  #over: Promise<void> | undefined;

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** Returns a function that removes it. When the connection has ended already, it is ended at once. */
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
