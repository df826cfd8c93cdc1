/** Levels 3 and 4 over the events of any number of streams, each in its own order. Pure: the events come from a store or a bundle. */
import { EnvelopeReplay } from "./envelopes.ts";
import { EffectSpans, type Compared, type Span } from "./effects.ts";
import { KeptBlobs, type BlobFact } from "./kept-blobs.ts";
import type { Entry } from "./facts.ts";
import { collectFindings, type Finding } from "./findings.ts";
import { Structure } from "./structure.ts";

export interface ReplayReport {
  readonly events: number;
  readonly turns: number;
  readonly calls: number;
  readonly hops: number;
  readonly hosts: number;
  readonly findings: readonly Finding[];
  /** Streams with a turn that has not ended. */
  readonly running: readonly string[];
  /** What level 5 compares. */
  readonly spans: readonly Span[];
  readonly compared: readonly Compared[];
  readonly blobs: readonly BlobFact[];
}

interface Stream {
  readonly structure: Structure;
  readonly envelopes: EnvelopeReplay;
  readonly effects: EffectSpans;
  readonly blobs: KeptBlobs;
}

export function createReplay() {
  const { report, kept: findings } = collectFindings();
  const streams = new Map<string, Stream>();
  const sum = { events: 0, turns: 0, calls: 0, hops: 0, hosts: 0 };
  const running: string[] = [];
  const spans: Span[] = [];
  const compared: Compared[] = [];
  const kept: BlobFact[] = [];

  function add({ turns, calls, hops, hosts }: Omit<typeof sum, "events">): void {
    sum.turns += turns;
    sum.calls += calls;
    sum.hops += hops;
    sum.hosts += hosts;
  }

  function close(name: string, { structure, envelopes, effects, blobs }: Stream): void {
    const { turns, openTurns } = structure.end();
    const { calls, hops, hosts } = envelopes.end();
    add({ turns, calls, hops, hosts });
    spans.push(...effects.end(name));
    compared.push(...effects.compared);
    kept.push(...blobs.end());
    if (openTurns.length > 0) running.push(name);
    streams.delete(name);
  }

  return {
    take(entry: Entry): void {
      sum.events += 1;
      let stream = streams.get(entry.stream);
      if (stream === undefined) {
        stream = {
          structure: new Structure(report),
          envelopes: new EnvelopeReplay(report),
          effects: new EffectSpans(),
          blobs: new KeptBlobs(),
        };
        streams.set(entry.stream, stream);
      }
      stream.structure.take(entry);
      stream.envelopes.take(entry);
      stream.effects.take(entry);
      stream.blobs.take(entry);
      if (entry.type === "thread.deleted") close(entry.stream, stream);
    },
    /** The stream goes on elsewhere: what is open in it is no finding. */
    cut(name: string): void {
      const stream = streams.get(name);
      if (stream === undefined) return;
      const { calls, hops, hosts } = stream.envelopes.end();
      add({ turns: stream.structure.turns, calls, hops, hosts });
      streams.delete(name);
    },
    end(): ReplayReport {
      for (const [name, stream] of streams) close(name, stream);
      return { ...sum, findings, running, spans, compared, blobs: kept };
    },
  };
}
