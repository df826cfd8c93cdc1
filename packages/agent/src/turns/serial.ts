/** One at a time per key: later calls wait for earlier ones, whether those succeed or fail. */
export interface Serial {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
}

export function createSerial(): Serial {
  const last = new Map<string, Promise<unknown>>();
  return {
    async run(key, work) {
      const before = last.get(key) ?? Promise.resolve();
      const mine = before.then(work, work);
      last.set(key, mine);
      try {
        return await mine;
      } finally {
        if (last.get(key) === mine) last.delete(key);
      }
    },
  };
}
