/** The catalog as a whole, for listing and refreshing it. Runs only look up, and load nothing of this. */
export { describeModels, type DescribedModel } from "./catalog/describe.ts";
export { importCatalog } from "./catalog/import.ts";
export { catalogsInForce } from "./catalog/lookup.ts";
export { LICENCE, refreshCatalog, resetCatalog, type RefreshReport } from "./catalog/refresh.ts";
export { catalogText, type CatalogModel } from "./catalog/rows.ts";
