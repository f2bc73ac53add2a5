import { VsphereError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import type { ArgsOf, Method, ResultOf } from '../soap/envelope.ts';
import type { SoapClient } from '../soap/soap-client.ts';
import { cappedVersion, negotiateVersion, OLDEST_VERSION, parseVersions } from '../soap/versions.ts';
import type { ManagedObjectReference, Vim25 } from '../vim25/vim25.generated.ts';
import { assertAuthenticated } from './assert-authenticated.ts';
import type { Credentials } from './credentials.ts';
import { assertSameVcenter, identityIn, identitySpec } from './identity.ts';

export const SERVICE: ManagedObjectReference = { type: 'ServiceInstance', value: 'ServiceInstance' };

/** An open session. Views and property collectors belong to the session and end with it. */
export interface Login {
  readonly cookie: string | undefined;
  /** Negotiated API version. */
  readonly version: string;
  readonly content: Vim25['ServiceContent'];
  /** vCenter's key of the session. */
  readonly key: string;
}

export interface LoginOptions {
  readonly soap: SoapClient;
  readonly timeoutMs: number;
  /** API version. @default the newest that client and server support */
  readonly version?: string | undefined;
  /** Expected `about.instanceUuid` of the vCenter. @default any */
  readonly identity?: string | undefined;
}

/**
 * Logs in. After an error other than FaultError and VcenterChangedError, vCenter may hold a session that the client
 * does not know.
 * @throws VcenterChangedError before the password is sent, if the server is not the expected vCenter
 * @throws VcenterChangedError after the login, if another vCenter issued the session
 */
export async function logIn(
  { username, password }: Credentials,
  { soap, timeoutMs, version: requestedVersion, identity }: LoginOptions,
): Promise<Login> {
  const negotiated = requestedVersion ?? (await negotiatedVersion(soap, timeoutMs));
  const { result: content } = await soap.call({
    method: 'RetrieveServiceContent',
    self: SERVICE,
    args: {},
    changes: false,
    version: negotiated ?? OLDEST_VERSION,
    timeoutMs,
  });
  const version = negotiated ?? cappedVersion(content.about.apiVersion);
  if (content.sessionManager === undefined) throw notSupported(content);
  assertSameVcenter(identity, content.about.instanceUuid);
  const { result: session, cookie } = await soap.call({
    method: 'Login',
    self: content.sessionManager,
    args: { userName: username, password },
    description: `logging in as '${username}'`,
    // With `true`, the error of a failed login could have `effectUnknown`. The caller would assume that its own request
    // may have had an effect, but that request is not sent.
    changes: false,
    version,
    timeoutMs,
    secret: password,
  });
  const login = { cookie, version, content, key: session.key };
  await verifyIssuer(login, soap, timeoutMs);
  return login;
}

/**
 * Verifies that the vCenter that passed the identity check also issued the session. The check and the login are two
 * requests. After a DNS change, or behind a load balancer, they may have reached different servers.
 */
async function verifyIssuer(login: Login, soap: SoapClient, timeoutMs: number): Promise<void> {
  const { sessionManager, propertyCollector: self, about } = login.content;
  if (sessionManager === undefined || about.instanceUuid === undefined) return;
  const method = 'RetrievePropertiesEx';
  const args = { specSet: [identitySpec(SERVICE, sessionManager)], options: {} };
  const read = await callWith(login, soap, { method, self, args, timeoutMs });
  assertAuthenticated(method, read);
  try {
    assertSameVcenter(about.instanceUuid, identityIn(read, login.key));
  } catch (error) {
    await logOut(login, soap, timeoutMs);
    throw error;
  }
}

/** Sends a call in the given session. Does not log in again if that session has ended. */
async function callWith<M extends Method>(
  { cookie, version }: Login,
  soap: SoapClient,
  { method, self, args, timeoutMs }: LoginCall<M>,
): Promise<ResultOf<M>> {
  return (await soap.call({ method, self, args, changes: false, version, cookie, timeoutMs })).result;
}

interface LoginCall<M extends Method> {
  readonly method: M;
  readonly self: ManagedObjectReference;
  readonly args: ArgsOf<M>;
  readonly timeoutMs: number;
}

/** Logs out. Ignores errors: vCenter ends idle sessions by itself. */
export async function logOut(login: Login, soap: SoapClient, timeoutMs: number): Promise<void> {
  const self = login.content.sessionManager;
  if (self === undefined) return;
  await callWith(login, soap, { method: 'Logout', self, args: {}, timeoutMs }).catch(
    rethrowUnlessVsphereError,
  );
}

/**
 * Terminates the sessions of logins for which no response arrived. These are all sessions with this client's user agent
 * except the current one. Ignores errors: the user may lack the privilege, and vCenter ends idle sessions by itself.
 */
export async function terminateOrphanedSessions(
  login: Login,
  soap: SoapClient,
  agent: string,
  timeoutMs: number,
): Promise<void> {
  const { sessionManager: self, propertyCollector } = login.content;
  if (self === undefined) return;
  const propSet = [{ type: self.type, pathSet: ['sessionList'] }];
  try {
    const read = await callWith(login, soap, {
      method: 'RetrievePropertiesEx',
      self: propertyCollector,
      args: { specSet: [{ propSet, objectSet: [{ obj: self }] }], options: {} },
      timeoutMs,
    });
    const sessions = read?.objects[0]?.propSet?.[0]?.val;
    const orphans = (Array.isArray(sessions) ? sessions : [])
      .filter(isSession)
      .filter(({ userAgent, key }) => userAgent === agent && key !== login.key);
    if (orphans.length === 0) return;
    const sessionId = orphans.map(({ key }) => key);
    await callWith(login, soap, { method: 'TerminateSession', self, args: { sessionId }, timeoutMs });
  } catch (error) {
    rethrowUnlessVsphereError(error);
  }
}

async function negotiatedVersion(soap: SoapClient, timeoutMs: number): Promise<string | undefined> {
  const text = await soap.getFile('/sdk/vimServiceVersions.xml', timeoutMs);
  try {
    return text === undefined ? undefined : negotiateVersion(parseVersions(text));
  } catch (error) {
    rethrowUnlessVsphereError(error); // the list of versions is optional; a proxy may have sent an invalid one
    return undefined;
  }
}

function notSupported({ about }: Vim25['ServiceContent']): FaultError {
  return new FaultError('logging in', 'NotSupported', {}, `${about.fullName} has no session manager`);
}

function rethrowUnlessVsphereError(error: unknown): void {
  if (!(error instanceof VsphereError)) throw error;
}

function isSession(value: unknown): value is Vim25['UserSession'] {
  return typeof value === 'object' && value !== null && 'key' in value && 'userName' in value;
}
