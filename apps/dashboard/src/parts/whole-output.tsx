/** The whole output of a command, which did not fit into the record: asked for a part at a time, or saved to a file. */
import { useState, type ReactNode } from "react";
import { api } from "../live/session.ts";
import { bytes } from "../words/figures.ts";
import { ActButton, Refusal, useAct } from "./act.tsx";
import { Printed } from "./printed.tsx";

interface WholeOutputProps {
  readonly threadId: string;
  readonly sha256: string;
  readonly leftOutBytes: number;
}

const PART_BYTES = 256 * 1024;
/** Of a file that the browser keeps in memory until it is saved. */
const MOST_SAVED_BYTES = 512 * 1024 * 1024;

/** All of a part is drawn. */
const PART_LINES = 2_000;

interface Part {
  /** Where this part begins, and those before it. */
  readonly starts: readonly number[];
  readonly to: number;
  readonly text: string;
  readonly isLast: boolean;
}

/** Bytes of the first lines, or of all. */
function partOf(all: Uint8Array): number {
  let lines = 0;
  for (let at = 0; at < all.length; at += 1) {
    if (all[at] === 10) lines += 1;
    if (lines === PART_LINES) return at + 1;
  }
  return all.length;
}

export function WholeOutput({ threadId, sha256, leftOutBytes }: WholeOutputProps): ReactNode {
  const act = useAct();
  const [part, setPart] = useState<Part>();
  const read = async (starts: readonly number[]): Promise<void> => {
    const from = starts.at(-1) ?? 0;
    const stream = await api().readOutput(threadId, { sha256, from, limit: PART_BYTES });
    const all = new Uint8Array(await new Response(stream).arrayBuffer());
    const length = partOf(all);
    const text = new TextDecoder().decode(all.subarray(0, length));
    setPart({ starts, to: from + length, text, isLast: length === all.length && all.length < PART_BYTES });
  };
  const save = async (): Promise<void> => {
    const stream = await api().readOutput(threadId, { sha256, limit: MOST_SAVED_BYTES });
    const url = URL.createObjectURL(await new Response(stream).blob());
    const link = document.createElement("a");
    link.href = url;
    link.download = `output-${sha256.slice(0, 12)}.txt`;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <>
      <p className="cutmark">
        {bytes(leftOutBytes)} left out in the middle{" "}
        {part === undefined ? <ActButton act={act} name="Show the whole output" call={() => read([0])} /> : null}{" "}
        <ActButton act={act} name="Save it" className="btn quiet" call={save} />
      </p>
      {part === undefined ? null : (
        <>
          <Printed text={part.text} isRunning={false} />
          <p className="row meta">
            bytes {(part.starts.at(-1) ?? 0).toLocaleString("en")} to {part.to.toLocaleString("en")}
            {part.starts.length === 1 ? null : (
              <ActButton act={act} name="The part before" call={() => read(part.starts.slice(0, -1))} />
            )}
            {part.isLast ? (
              " · its end"
            ) : (
              <ActButton act={act} name="The next part" call={() => read([...part.starts, part.to])} />
            )}
          </p>
        </>
      )}
      <Refusal act={act} />
    </>
  );
}
