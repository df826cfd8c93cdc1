/** Every subject: one file each in subjects/. `HEDDLE_SUBJECTS` names those of a run, with commas between them. */
import { readdirSync } from "node:fs";
import path from "node:path";
import type { Subject } from "./subject.ts";

const FOLDER = path.join(import.meta.dirname, "subjects");

export async function readSubjects(): Promise<readonly Subject[]> {
  const files = readdirSync(FOLDER).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const { subject }: { subject: Subject } = await import(path.join(FOLDER, file));
      return subject;
    }),
  );
}

export async function chosenSubjects(): Promise<readonly Subject[]> {
  const names = (process.env["HEDDLE_SUBJECTS"] ?? "").split(",").filter((name) => name !== "");
  const all = await readSubjects();
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}
