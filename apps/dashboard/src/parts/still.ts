/** Whether what is drawn is a file that is only read: nothing in it moves or acts, and what unfolds does so without a script. */
import { createContext } from "react";

export const Still = createContext(false);
