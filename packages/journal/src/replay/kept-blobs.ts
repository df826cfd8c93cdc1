/** Which contents the events of a stream name by their hash, and which of these were removed by rule since they were named last. */
import { factsIn, listIn, textIn, type Entry } from "./facts.ts";

export interface BlobFact {
  readonly stream: string;
  /** Of the event that names it last. */
  readonly version: number;
  readonly sha256: string;
  readonly isCollected: boolean;
}

export class KeptBlobs {
  readonly #facts = new Map<string, BlobFact>();

  take({ stream, version, type, body }: Entry): void {
    if (body === undefined) return;
    if (type === "item.completed") {
      const sha256 = textIn(factsIn(body, "item"), "outputBlob");
      if (sha256 !== undefined) this.#facts.set(sha256, { stream, version, sha256, isCollected: false });
    } else if (type === "evidence.collected") {
      for (const blob of listIn(body, "blobs")) {
        const fact = this.#facts.get(textIn(blob, "sha256") ?? "");
        if (fact !== undefined) this.#facts.set(fact.sha256, { ...fact, isCollected: true });
      }
    }
  }

  end(): readonly BlobFact[] {
    return [...this.#facts.values()];
  }
}
