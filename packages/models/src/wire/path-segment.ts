/** The name of a model as one segment of a path. A name that would be a step up or down in it is no name. */
import { HeddleError } from "@heddle/protocol";

export function segment(model: string): string {
  if (model === "" || /^\.{1,2}$/.test(model)) throw new HeddleError("model.unknown", `"${model}" is not a model name`);
  return encodeURIComponent(model);
}
