/** Files a run is given: all are tried before the run begins, so that none of them fails after it. */
import { stat } from "node:fs/promises";
import path from "node:path";
import { imageTypeOf, HeddleError, reasonOf, type InputPart } from "@heddle/protocol";
import { readInputFile } from "./input-file.ts";

/** What the largest provider takes for one image. */
const MAX_IMAGE_BYTES = 20 * 1024 * 1024;
const MAX_SCHEMA_BYTES = 1024 * 1024;

interface ImageOptions {
  readonly cwd: string;
  /** The model is told of a file that is no image, in its place; otherwise the run is refused. */
  readonly mayBeUnreadable: boolean;
  readonly notify: (text: string) => void;
}

export async function readImages(files: readonly string[], options: ImageOptions): Promise<readonly InputPart[]> {
  const single = await Promise.all(files.map((file) => splitList(file, options.cwd)));
  return Promise.all(single.flat().map((file) => readImage(file).catch((error: unknown) => asText(error, options))));
}

function asText(error: unknown, { mayBeUnreadable, notify }: ImageOptions): InputPart {
  if (!mayBeUnreadable) throw error;
  notify(`${reasonOf(error)}; the model gets a note instead`);
  return { type: "text", text: `[An image was given that could not be used: ${reasonOf(error)}]` };
}

/** `a.png,b.png` are two, unless there is a file of that name. */
async function splitList(list: string, cwd: string): Promise<readonly string[]> {
  const whole = path.resolve(cwd, list);
  if (!list.includes(",") || (await stat(whole).catch(() => undefined)) !== undefined) return [whole];
  return list
    .split(",")
    .filter((file) => file !== "")
    .map((file) => path.resolve(cwd, file));
}

async function readImage(file: string): Promise<InputPart> {
  const bytes = await readInputFile(file, "-i", MAX_IMAGE_BYTES);
  const mediaType = imageTypeOf(bytes);
  if (mediaType === undefined) throw usage(`-i ${file} is not a PNG, JPEG, GIF or WebP image`);
  return { type: "image", mediaType, base64: bytes.toString("base64") };
}

export async function readSchema(file: string, cwd: string): Promise<Record<string, unknown>> {
  const full = path.resolve(cwd, file);
  const bytes = await readInputFile(full, "--output-schema", MAX_SCHEMA_BYTES);
  let schema: unknown;
  try {
    schema = JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    const why = reasonOf(error);
    throw usage(`--output-schema ${full} is not JSON: ${why}`);
  }
  if (isRecord(schema)) return schema;
  throw usage(`--output-schema ${full} is not a JSON Schema; it must be an object such as {"type": "object", …}`);
}

function usage(message: string): HeddleError {
  return new HeddleError("usage.invalid", message);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
