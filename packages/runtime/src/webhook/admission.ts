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

/** When it is asked, as the API server is told. */
export interface AdmissionSettings {
  /** @default CREATE and UPDATE. Deletions are validated, never mutated. */
  readonly operations?: readonly Operation[];
  /** Writes of the status too. @default false */
  readonly status?: boolean;
  /** What happens when no answer comes: the request is refused, or done unasked. @default 'Fail' */
  readonly failurePolicy?: 'Fail' | 'Ignore';
  /** How long the API server waits: 1 to 30. @default 10 */
  readonly timeoutSeconds?: number;
  /** `NoneOnDryRun` for handlers that change something outside, but not when `dryRun` is set. @default 'None' */
  readonly sideEffects?: 'None' | 'NoneOnDryRun';
  readonly namespaceSelector?: object;
  readonly objectSelector?: object;
  /** CEL, checked by the API server before it asks. */
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  /** `IfNeeded`: ask again when another webhook has changed the object since. @default 'Never' */
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded';
}

/** What is asked before objects of a kind are stored or deleted. */
export interface AdmissionRules<T extends KubeObject> extends AdmissionSettings {
  /**
   * Whether it may be done. `object` is what is to be stored or, for a DELETE, what is to be deleted. It comes after all
   * mutations and after the API server has held the object to its schema.
   */
  readonly validate?: (
    object: T,
    request: CreateRequest | UpdateRequest<T> | DeleteRequest,
  ) => Verdict | Promise<Verdict>;
  /**
   * The object as it is wanted, or a refusal. It may be asked again about its own result, which must then stay as it
   * is. The API server asks before it holds the object to its schema: of a kind of our own, objects that do not fit are
   * passed over here, and refused there.
   */
  readonly mutate?: (
    object: T,
    request: CreateRequest | UpdateRequest<T>,
  ) => T | Denied | Promise<T | Denied>;
}

/** Rules for a kind, declared: for `manager.admit` and `webhookManifests`. */
export interface Admission {
  readonly type: 'admission';
  readonly kind: Kind;
  readonly settings: AdmissionSettings;
  readonly operations: readonly Operation[];
  readonly validate: ((review: AdmissionReview, signal: AbortSignal) => Promise<Verdict>) | undefined;
  readonly mutate: ((review: AdmissionReview, signal: AbortSignal) => Promise<Mutation>) | undefined;
}

/** @throws DeclarationError for rules that ask nothing, or what the API server would refuse */
export function admission<T extends KubeObject>(
  kind: Kind<T>,
  { validate, mutate, ...settings }: AdmissionRules<T>,
): Admission {
  const { operations = ['CREATE', 'UPDATE'], timeoutSeconds = 10 } = settings;
  if (validate === undefined && mutate === undefined)
    throw new DeclarationError(`the admission of ${kind.kind} neither validates nor mutates`);
  if (!Number.isInteger(timeoutSeconds) || timeoutSeconds < 1 || timeoutSeconds > 30)
    throw new DeclarationError(`the admission of ${kind.kind} must take from 1 to 30 whole seconds`);
  if (operations.length === 0)
    throw new DeclarationError(`the admission of ${kind.kind} is for no operation at all`);
  return {
    type: 'admission',
    kind,
    settings,
    operations,
    validate: validate && ((review, signal) => validated(kind, validate, review, signal)),
    mutate: mutate && ((review, signal) => mutated(kind, mutate, review, signal)),
  };
}

/** As controller-runtime calls them: `/validate-vm-example-org-v1-vmgroup`. */
export function admissionPath(type: 'validate' | 'mutate', { group, version, kind }: Kind): string {
  return `/${type}-${group.replaceAll('.', '-')}-${version}-${kind.toLowerCase()}`;
}

async function validated<T extends KubeObject>(
  kind: Kind<T>,
  validate: NonNullable<AdmissionRules<T>['validate']>,
  { operation, object, oldObject, about }: AdmissionReview,
  signal: AbortSignal,
): Promise<Verdict> {
  switch (operation) {
    case 'CREATE':
      return validate(objectIn(kind, object, 'object'), { ...about, signal, operation });
    case 'UPDATE': {
      const before = objectIn(kind, oldObject, 'oldObject');
      return validate(objectIn(kind, object, 'object'), { ...about, signal, operation, before });
    }
    case 'DELETE':
      return validate(objectIn(kind, oldObject, 'oldObject'), { ...about, signal, operation });
  }
}

async function mutated<T extends KubeObject>(
  kind: Kind<T>,
  mutate: NonNullable<AdmissionRules<T>['mutate']>,
  { operation, object, oldObject, about }: AdmissionReview,
  signal: AbortSignal,
): Promise<Mutation> {
  // There is nothing to change in what is to go; the API server would refuse a patch.
  if (operation === 'DELETE') return { allowed: true, patch: [] };
  const before = objectIn(kind, object, 'object');
  if (!fits(kind, before)) return { allowed: true, patch: [] };
  // A copy: whoever changes it instead of making another gets his patch all the same.
  const given = structuredClone(before);
  const wanted = await (operation === 'CREATE'
    ? mutate(given, { ...about, signal, operation })
    : mutate(given, { ...about, signal, operation, before: objectIn(kind, oldObject, 'oldObject') }));
  if (isDenied(wanted)) return wanted;
  const after: unknown = JSON.parse(JSON.stringify(wanted) ?? 'null'); // fields that are undefined are not there
  if (!isJsonObject(after)) throw new TypeError(`the mutation of ${kind.kind} has returned no object`);
  return { allowed: true, patch: jsonPatch(before, after) };
}

function isDenied(wanted: KubeObject | Denied): wanted is Denied {
  return 'allowed' in wanted && wanted.allowed === false && !('metadata' in wanted);
}

/** Whether it is of the type that the handler expects, as far as that was declared. */
function fits(kind: Kind & { readonly schema?: Schema }, object: KubeObject): boolean {
  if (kind.schema === undefined) return true;
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...content } = object;
  return validate(kind.schema, content).length === 0;
}
