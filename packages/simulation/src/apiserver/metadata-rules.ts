import { type FieldError, UnmodelledError } from './errors.ts';
import type { DraftMeta, StoredMeta } from './object.ts';

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const QUALIFIED =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

const NAME_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_RULE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/** Returns the validation errors of an object's metadata, with the API server's texts. */
export function metadataProblems(metadata: DraftMeta): FieldError[] {
  const { name = '', labels = {}, annotations = {}, finalizers = [], ownerReferences = [] } = metadata;
  const problems: FieldError[] = [];
  if (name === '')
    problems.push({
      field: 'metadata.name',
      reason: 'FieldValueRequired',
      message: 'Required value: name or generateName is required',
    });
  else if (name.length > 253) throw new UnmodelledError('names of more than 253 characters');
  else if (!SUBDOMAIN.test(name)) problems.push(rejected('metadata.name', name, NAME_RULE));
  for (const [key, value] of Object.entries(labels)) {
    if (!QUALIFIED.test(key) || value.length > 63) throw new UnmodelledError(`the label ${key}=${value}`);
    if (!LABEL_VALUE.test(value)) problems.push(rejected('metadata.labels', value, LABEL_RULE));
  }
  for (const key of Object.keys(annotations))
    if (!QUALIFIED.test(key.toLowerCase())) throw new UnmodelledError(`the annotation ${key}`);
  for (const finalizer of finalizers)
    if (!QUALIFIED.test(finalizer)) throw new UnmodelledError(`the finalizer ${finalizer}`);
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion'))
    throw new UnmodelledError('the finalizers orphan and foregroundDeletion at the same time');
  if (ownerReferences.filter(({ controller }) => controller).length > 1)
    throw new UnmodelledError('two owners as controllers');
  return problems;
}

/** Returns the validation errors of an update of an object's metadata. */
export function metadataChangeProblems(before: StoredMeta, after: DraftMeta): FieldError[] {
  const problems: FieldError[] = [];
  if (before.deletionTimestamp !== undefined) {
    const added = (after.finalizers ?? []).filter((each) => !before.finalizers?.includes(each));
    const list = [...new Set(added)].sort().map((each) => JSON.stringify(each));
    if (list.length > 0)
      problems.push({
        field: 'metadata.finalizers',
        reason: 'FieldValueForbidden',
        message: `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${list.join(', ')}}`,
      });
  }
  if (after.uid !== before.uid) problems.push(rejected('metadata.uid', after.uid, 'field is immutable'));
  return problems;
}

export function rejected(field: string, value: unknown, why: string): FieldError {
  return { field, reason: 'FieldValueInvalid', message: `Invalid value: ${JSON.stringify(value)}: ${why}` };
}
