/** Whose account counts where nobody names one. Apart from the store, which a run with a key in its environment never loads. */
export const LOCAL_OWNER = "local";
export const DEFAULT_PROFILE = "default";
