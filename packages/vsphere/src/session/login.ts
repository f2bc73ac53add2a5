import { refuseIfSignedOut } from '../calls/signed-out.ts';
import { VsphereError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import type { ArgsOf, Method, ResultOf } from '../soap/envelope.ts';
import { agreedVersion, cappedVersion, OLDEST_VERSION, versionsIn } from '../soap/versions.ts';
import type { Wire } from '../soap/wire.ts';
import type { ManagedObjectReference, Vim25 } from '../vim25/vim25.generated.ts';
import type { Credentials } from './credentials.ts';
import { assertSameVcenter, identityIn, identitySpec } from './identity.ts';

export const SERVICE: ManagedObjectReference = { type: 'ServiceInstance', value: 'ServiceInstance' };

/** A session that stands. Views and collectors live in it, and end with it. */
export interface Login {
  readonly cookie: string | undefined;
  /** Of the API, as agreed. */
  readonly version: string;
  readonly content: Vim25['ServiceContent'];
  /** By which vCenter knows it. */
  readonly key: string;
}

export interface LoginOptions {
  readonly wire: Wire;
  readonly timeoutMs: number;
  /** In place of the agreed one. */
  readonly version?: string | undefined;
  /** `about.instanceUuid` of the vCenter that it has to be. @default any */
  readonly identity?: string | undefined;
}

/**
 * Logs in. After an error that is neither a fault nor a VcenterChangedError, vCenter may hold a session that the client
 * does not know.
 * @throws VcenterChangedError before the password is sent, where the server is not the one that it has to be
 */
export async function logIn(
  { username, password }: Credentials,
  { wire, timeoutMs, version: wanted, identity }: LoginOptions,
): Promise<Login> {
  const offered = wanted ?? (await offeredVersion(wire, timeoutMs));
  const { result: content } = await wire.call({
    method: 'RetrieveServiceContent',
    self: SERVICE,
    args: {},
    changes: false,
    version: offered ?? OLDEST_VERSION,
    timeoutMs,
  });
  const version = offered ?? cappedVersion(content.about.apiVersion);
  if (content.sessionManager === undefined) throw notVcenter(content);
  assertSameVcenter(identity, content.about.instanceUuid);
  const { result: session, cookie } = await wire.call({
    method: 'Login',
    self: content.sessionManager,
    args: { userName: username, password },
    what: `logging in as '${username}'`,
    changes: false, // to those who wait for a session, nothing of theirs was sent
    version,
    timeoutMs,
    secret: password,
  });
  const login = { cookie, version, content, key: session.key };
  await verifyIssuer(login, wire, timeoutMs);
  return login;
}

/**
 * Makes sure that the session belongs to the vCenter whose identity was compared: the address may have changed between the
 * two requests, or lead to either.
 */
async function verifyIssuer(login: Login, wire: Wire, timeoutMs: number): Promise<void> {
  const { sessionManager, propertyCollector: self, about } = login.content;
  if (sessionManager === undefined || about.instanceUuid === undefined) return;
  const method = 'RetrievePropertiesEx';
  const args = { specSet: [identitySpec(SERVICE, sessionManager)], options: {} };
  const read = await callIn(login, wire, { method, self, args, timeoutMs });
  refuseIfSignedOut(method, read);
  try {
    assertSameVcenter(about.instanceUuid, identityIn(read, login.key));
  } catch (error) {
    await logOut(login, wire, timeoutMs);
    throw error;
  }
}

/** A call with a session, and no care for its end. */
async function callIn<M extends Method>(
  { cookie, version }: Login,
  wire: Wire,
  { method, self, args, timeoutMs }: CallIn<M>,
): Promise<ResultOf<M>> {
  return (await wire.call({ method, self, args, changes: false, version, cookie, timeoutMs })).result;
}

interface CallIn<M extends Method> {
  readonly method: M;
  readonly self: ManagedObjectReference;
  readonly args: ArgsOf<M>;
  readonly timeoutMs: number;
}

/** Ends a session, as far as that can be had: it ends by itself too. */
export async function logOut(login: Login, wire: Wire, timeoutMs: number): Promise<void> {
  const self = login.content.sessionManager;
  if (self === undefined) return;
  await callIn(login, wire, { method: 'Logout', self, args: {}, timeoutMs }).catch(onlyOurs);
}

/**
 * Ends sessions that were begun by a login whose answer was lost: those of our agent, which is no other process's, but
 * for the one that stands. It takes a privilege that the user may lack; then they end by being idle.
 */
export async function endOthers(login: Login, wire: Wire, agent: string, timeoutMs: number): Promise<void> {
  const { sessionManager: self, propertyCollector } = login.content;
  if (self === undefined) return;
  const propSet = [{ type: self.type, pathSet: ['sessionList'] }];
  try {
    const read = await callIn(login, wire, {
      method: 'RetrievePropertiesEx',
      self: propertyCollector,
      args: { specSet: [{ propSet, objectSet: [{ obj: self }] }], options: {} },
      timeoutMs,
    });
    const sessions = read?.objects[0]?.propSet?.[0]?.val;
    const others = (Array.isArray(sessions) ? sessions : [])
      .filter(isSession)
      .filter(({ userAgent, key }) => userAgent === agent && key !== login.key);
    if (others.length === 0) return;
    const sessionId = others.map(({ key }) => key);
    await callIn(login, wire, { method: 'TerminateSession', self, args: { sessionId }, timeoutMs });
  } catch (error) {
    onlyOurs(error);
  }
}

async function offeredVersion(wire: Wire, timeoutMs: number): Promise<string | undefined> {
  const text = await wire.file('/sdk/vimServiceVersions.xml', timeoutMs);
  try {
    return text === undefined ? undefined : agreedVersion(versionsIn(text));
  } catch (error) {
    onlyOurs(error); // a page of a proxy, perhaps
    return undefined;
  }
}

function notVcenter({ about }: Vim25['ServiceContent']): FaultError {
  return new FaultError('logging in', 'NotSupported', {}, `${about.fullName} has no session manager`);
}

function onlyOurs(error: unknown): void {
  if (!(error instanceof VsphereError)) throw error;
}

function isSession(value: unknown): value is Vim25['UserSession'] {
  return typeof value === 'object' && value !== null && 'key' in value && 'userName' in value;
}
