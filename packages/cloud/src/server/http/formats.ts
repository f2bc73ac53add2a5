/** Name of the format that rejects lone surrogates. Storing them would replace them with another character. */
export const WELL_FORMED = 'well-formed-unicode';

/** Custom JSON Schema formats, for rules that no portable pattern can express. */
export const FORMATS = { [WELL_FORMED]: (value: string) => value.isWellFormed() };
