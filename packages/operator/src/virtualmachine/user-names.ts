import type { VirtualMachine } from './resource.ts';

/** Maximum length of a login name (useradd). */
const MAX_LENGTH = 32;

/** Login names of the users, and which of them were changed or collide. */
export interface UserNames {
  /** Legal name of each user, in the order of the spec. */
  readonly names: readonly string[];
  readonly changed: readonly { readonly from: string; readonly to: string }[];
  /** Two users of the spec that have the same legal name. */
  readonly collision?: { readonly users: readonly [string, string]; readonly name: string };
}

/** Returns a login name that every Linux distribution accepts: `^[a-z_][a-z0-9_-]*$`, at most 32 characters. */
export function legalUserName(name: string): string {
  const letters = name.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  const trimmed = letters.replace(/[^a-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '');
  const started = /^[a-z_]/.test(trimmed) ? trimmed : trimmed === '' ? 'user' : `_${trimmed}`;
  return started.slice(0, MAX_LENGTH).replace(/-+$/, '');
}

/** Returns the login names of a VirtualMachine's users. */
export function userNamesOf({ spec: { users = [] } }: VirtualMachine): UserNames {
  const names = users.map(({ name }) => legalUserName(name));
  const changed = users.flatMap(({ name: from }, i) => {
    const to = names[i] ?? from;
    return to === from ? [] : [{ from, to }];
  });
  const second = names.findIndex((name, i) => names.indexOf(name) < i);
  const name = names[second];
  const [a, b] = name === undefined ? [] : [users[names.indexOf(name)]?.name, users[second]?.name];
  if (name === undefined || a === undefined || b === undefined) return { names, changed };
  return { names, changed, collision: { users: [a, b], name } };
}

/** Returns the message about changed names; undefined if none was changed. */
export function changedNamesMessage({ changed }: UserNames): string | undefined {
  if (changed.length === 0) return undefined;
  const pairs = changed.map(({ from, to }) => `"${from}" to "${to}"`).join(', ');
  return `Linux does not allow these user names, so they were changed: ${pairs}`;
}

/** Returns the message about two users with the same login name; undefined if all login names differ. */
export function collisionMessage({ collision }: UserNames): string | undefined {
  if (collision === undefined) return undefined;
  const [a, b] = collision.users;
  return `spec.users: the users "${a}" and "${b}" have the same login name "${collision.name}". Rename one of them`;
}
