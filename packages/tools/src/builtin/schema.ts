/**
 * Schemas for what models send. The small form of the library: a tool is loaded when its first call comes, and somebody
 * waits for it. It brings no words of its own, and a model has to read what was wrong with its arguments.
 */
import * as z from "zod/mini";
import en from "zod/v4/locales/en.js";

z.config(en());

export { z };
