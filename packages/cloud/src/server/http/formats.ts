/** Name of the format that excludes half of a surrogate pair, which would come back as another character. */
export const WELL_FORMED = 'well-formed-unicode';

/** Formats beyond those of JSON Schema, for what no pattern that all languages understand can say. */
export const FORMATS = { [WELL_FORMED]: (value: string) => value.isWellFormed() };
