import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { isJsonObject } from '../kind/schema/json.ts';
import { DeclarationError, type Schema } from '../kind/schema/schema.ts';
import { validate } from '../kind/schema/validate.ts';
import type { AdmissionReview } from './admission-review.ts';
import { jsonPatch } from './json-patch.ts';
import { objectIn } from './object.ts';
import type {
  CreateRequest,
  DeleteRequest,
  Denied,
  Mutation,
  Operation,
  UpdateRequest,
  Verdict,
} from './verdict.ts';

/** Settings of the webhook in the webhook configuration. */
export interface AdmissionSettings {
  /** Operations to review. Deletions are validated, never mutated. @default CREATE and UPDATE */
  readonly operations?: readonly Operation[];
  /** Whether to review writes of the status subresource too. @default false */
  readonly status?: boolean;
  /** If the webhook fails, `Fail` rejects the request and `Ignore` accepts it without a review. @default 'Fail' */
  readonly failurePolicy?: 'Fail' | 'Ignore';
  /** Time that the API server waits for a response, 1 to 30 seconds. @default 10 */
  readonly timeoutSeconds?: number;
  /**
   * Side effects of the handlers: `None` if they never change external state, `NoneOnDryRun` if they change it only in
   * requests without `dryRun`.
   * @default 'None'
   */
  readonly sideEffects?: 'None' | 'NoneOnDryRun';
  readonly namespaceSelector?: object;
  readonly objectSelector?: object;
  /** CEL expressions that the API server evaluates before it calls the webhook. */
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  /**
   * Reinvocation policy: `IfNeeded` calls the webhook again when a later webhook has changed the object.
   * @default 'Never'
   */
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded';
}

/** Admission handlers of a kind, with the settings of their webhooks. */
export interface AdmissionRules<T extends KubeObject> extends AdmissionSettings {
  /**
   * Validates a request. `object` is the object to store or, for a DELETE, the object to delete. The API server calls
   * the webhook after all mutations and after the schema validation.
   */
  readonly validate?: (
    object: T,
    request: CreateRequest | UpdateRequest<T> | DeleteRequest,
  ) => Verdict | Promise<Verdict>;
  /**
   * Returns the changed object, or a denial. It must be idempotent, because it may be called again with its own result.
   * The API server calls the webhook before it validates the schema. For declared kinds, `mutate` is not called with an
   * object that does not match the schema. The API server rejects such an object afterwards.
   */
  readonly mutate?: (
    object: T,
    request: CreateRequest | UpdateRequest<T>,
  ) => T | Denied | Promise<T | Denied>;
}

/** Declared admission webhook of a kind, for `manager.admit` and `webhookManifests`. */
export interface Admission {
  readonly type: 'admission';
  readonly kind: Kind;
  readonly settings: AdmissionSettings;
  readonly operations: readonly Operation[];
  readonly validate: ((review: AdmissionReview, signal: AbortSignal) => Promise<Verdict>) | undefined;
  readonly mutate: ((review: AdmissionReview, signal: AbortSignal) => Promise<Mutation>) | undefined;
}

/** Declares an admission webhook. @throws DeclarationError if the rules have no handler or invalid settings */
export function admission<T extends KubeObject>(
  kind: Kind<T>,
  { validate, mutate, ...settings }: AdmissionRules<T>,
): Admission {
  const { operations = ['CREATE', 'UPDATE'], timeoutSeconds = 10 } = settings;
  if (validate === undefined && mutate === undefined)
    throw new DeclarationError(`the admission of ${kind.kind} neither validates nor mutates`);
  if (!Number.isInteger(timeoutSeconds) || timeoutSeconds < 1 || timeoutSeconds > 30)
    throw new DeclarationError(
      `the admission of ${kind.kind} must have timeoutSeconds from 1 to 30, as a whole number`,
    );
  if (operations.length === 0) throw new DeclarationError(`the admission of ${kind.kind} has no operations`);
  return {
    type: 'admission',
    kind,
    settings,
    operations,
    validate: validate && ((review, signal) => validated(kind, validate, review, signal)),
    mutate: mutate && ((review, signal) => mutated(kind, mutate, review, signal)),
  };
}

/** Returns the path of a webhook in controller-runtime's form: `/validate-vm-example-org-v1-vmgroup`. */
export function admissionPath(type: 'validate' | 'mutate', { group, version, kind }: Kind): string {
  return `/${type}-${group.replaceAll('.', '-')}-${version}-${kind.toLowerCase()}`;
}

async function validated<T extends KubeObject>(
  kind: Kind<T>,
  validate: NonNullable<AdmissionRules<T>['validate']>,
  { operation, object, oldObject, propagation, info }: AdmissionReview,
  signal: AbortSignal,
): Promise<Verdict> {
  switch (operation) {
    case 'CREATE':
      return validate(objectIn(kind, object, 'object'), { ...info, signal, operation });
    case 'UPDATE': {
      const before = objectIn(kind, oldObject, 'oldObject');
      return validate(objectIn(kind, object, 'object'), { ...info, signal, operation, before });
    }
    case 'DELETE':
      return validate(objectIn(kind, oldObject, 'oldObject'), { ...info, signal, operation, propagation });
  }
}

async function mutated<T extends KubeObject>(
  kind: Kind<T>,
  mutate: NonNullable<AdmissionRules<T>['mutate']>,
  { operation, object, oldObject, info }: AdmissionReview,
  signal: AbortSignal,
): Promise<Mutation> {
  // The API server rejects a patch for a deletion.
  if (operation === 'DELETE') return { allowed: true, patch: [] };
  const before = objectIn(kind, object, 'object');
  if (!matchesSchema(kind, before)) return { allowed: true, patch: [] };
  // Pass a copy, so that a handler may also modify its argument.
  const copy = structuredClone(before);
  const result = await (operation === 'CREATE'
    ? mutate(copy, { ...info, signal, operation })
    : mutate(copy, { ...info, signal, operation, before: objectIn(kind, oldObject, 'oldObject') }));
  if (isDenied(result)) return result;
  const after: unknown = JSON.parse(JSON.stringify(result) ?? 'null'); // drops undefined fields
  if (!isJsonObject(after)) throw new TypeError(`the mutation of ${kind.kind} did not return an object`);
  return { allowed: true, patch: jsonPatch(before, after) };
}

function isDenied(result: KubeObject | Denied): result is Denied {
  return 'allowed' in result && result.allowed === false && !('metadata' in result);
}

/** Returns whether an object matches the schema of a declared kind; true for other kinds. */
function matchesSchema(kind: Kind & { readonly schema?: Schema }, object: KubeObject): boolean {
  if (kind.schema === undefined) return true;
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...content } = object;
  return validate(kind.schema, content).length === 0;
}
