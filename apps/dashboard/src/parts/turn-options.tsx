/** What a turn of one's own begins with besides words: images, a model, an envelope, who is asked, whether it only plans. */
import type { InputPart, StartTurnInput } from "@heddle/protocol/http";
import { useState, type ReactNode } from "react";
import { useResource } from "../live/resource.ts";
import { api } from "../live/session.ts";
import { line } from "../text/shown.ts";
import { bytes } from "../words/figures.ts";

type Image = Extract<InputPart, { type: "image" }>;
interface Shot {
  readonly name: string;
  readonly size: number;
  readonly part: Image;
}

interface TurnOptions {
  readonly images: readonly Shot[];
  readonly model: string;
  readonly envelope: string;
  readonly approvalPolicy: "" | "never" | "on-request" | "untrusted";
  readonly isPlan: boolean;
}

export const NO_OPTIONS: TurnOptions = { images: [], model: "", envelope: "", approvalPolicy: "", isPlan: false };

/** A body has eight megabytes, and base64 takes a third more. */
const MOST_IMAGE_BYTES = 5_500_000;

/** What is not chosen is as the thread has it. */
export function turnOf(words: string, options: TurnOptions): StartTurnInput {
  const { images, model, envelope, approvalPolicy, isPlan } = options;
  const at = model.indexOf("\n");
  return {
    input:
      images.length === 0
        ? words
        : [...(words === "" ? [] : [{ type: "text" as const, text: words }]), ...images.map(({ part }) => part)],
    ...(model === "" ? {} : { provider: model.slice(0, at), model: model.slice(at + 1) }),
    ...(envelope === "" ? {} : { envelope }),
    ...(approvalPolicy === "" ? {} : { approvalPolicy }),
    ...(isPlan ? { mode: "plan" as const } : {}),
  };
}

interface Props {
  readonly options: TurnOptions;
  readonly onChange: (options: TurnOptions) => void;
  /** Whose project's envelopes count besides. */
  readonly workspace: string | undefined;
}

export function TurnOptionsFields({ options, onChange, workspace }: Props): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const { images } = options;
  return (
    <details className="turn-more" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="fg2 t12">
        {images.length === 0
          ? "Images, model, sandbox"
          : `${images.length} ${images.length === 1 ? "image" : "images"}`}
      </summary>
      {isOpen ? <Choices options={options} onChange={onChange} workspace={workspace} /> : null}
    </details>
  );
}

function Choices({ options, onChange, workspace }: Props): ReactNode {
  const models = useResource("models", async (signal) => (await api().models({}, { signal })).data);
  const envelopes = useResource(
    `envelopes:${workspace ?? ""}`,
    async (signal) => (await api().envelopes(workspace === undefined ? {} : { workspace }, { signal })).data,
  );
  const listed = (models.data ?? []).flatMap(({ provider, models: all }) =>
    all.map(({ id }) => ({ value: `${provider}\n${id}`, text: `${provider} ${id}` })),
  );
  const set = (change: Partial<TurnOptions>): void => onChange({ ...options, ...change });
  return (
    <div className="turn-choices">
      <Images options={options} onChange={onChange} />
      <Choice label="Model" value={options.model} onChange={(model) => set({ model })} choices={listed} />
      <Choice
        label="Envelope"
        value={options.envelope}
        onChange={(envelope) => set({ envelope })}
        choices={(envelopes.data ?? []).map(({ id, description }) => ({ value: id, text: `${id}: ${description}` }))}
      />
      <Choice
        label="Who is asked"
        value={options.approvalPolicy}
        onChange={(word) => set({ approvalPolicy: POLICIES.find(({ value }) => value === word)?.value ?? "" })}
        choices={POLICIES}
      />
      <label className="row t12 fg1">
        <input type="checkbox" checked={options.isPlan} onChange={(event) => set({ isPlan: event.target.checked })} />
        only plan
      </label>
    </div>
  );
}

const POLICIES = [
  { value: "never", text: "nobody: what the sandbox refuses is refused" },
  { value: "on-request", text: "you, where the agent wants more" },
  { value: "untrusted", text: "you, before every command that is not known" },
] as const;

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly choices: readonly { readonly value: string; readonly text: string }[];
}

function Choice({ label, value, onChange, choices }: ChoiceProps): ReactNode {
  return (
    <label className="fl">
      <span className="h">{label}</span>
      <select className="in" value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">as it is set</option>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {line(choice.text)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Images({ options, onChange }: Omit<Props, "workspace">): ReactNode {
  const [problem, setProblem] = useState("");
  const { images } = options;
  const add = async (files: FileList | null): Promise<void> => {
    const read = await Promise.all([...(files ?? [])].map(readImage));
    const next = [...images, ...read];
    const size = next.reduce((sum, one) => sum + one.size, 0);
    if (size > MOST_IMAGE_BYTES) setProblem(`That is ${bytes(size)}; all images together have at most 5.5 MB.`);
    else onChange({ ...options, images: next });
  };
  return (
    <div className="fl">
      <label>
        <span className="h">Images</span>
        <input
          className="in"
          type="file"
          accept="image/png,image/jpeg,image/gif,image/webp"
          multiple
          onChange={(event) => {
            setProblem("");
            add(event.target.files).catch(() => setProblem("One of them could not be read."));
            event.target.value = "";
          }}
        />
      </label>
      {images.map(({ name, size }, index) => (
        <span key={index} className="tag">
          {line(name)}, {bytes(size)}{" "}
          <button
            type="button"
            aria-label={`Leave out ${line(name)}`}
            onClick={() => onChange({ ...options, images: images.filter((_, at) => at !== index) })}
          >
            ×
          </button>
        </span>
      ))}
      {problem === "" ? null : (
        <p className="refusal" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

async function readImage(file: File): Promise<Shot> {
  const all = new Uint8Array(await file.arrayBuffer());
  let text = "";
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < all.length; at += 32_768) text += String.fromCharCode(...all.subarray(at, at + 32_768));
  return { name: file.name, size: file.size, part: { type: "image", mediaType: file.type, base64: btoa(text) } };
}
