/**
 * Client of the private cloud. The server has its own entry point, `@vmwright/cloud/server`, which clients do not load.
 */
export type { LabelChanges, Labels, NewServer, Server, ServerState, ServerStatus } from './api/server.ts';
export {
  type CallOptions,
  type CallScope,
  ClientOptionsError,
  CloudClient,
  type CloudClientOptions,
  type ListOptions,
} from './client/client.ts';
export {
  CloudError,
  ConnectionError,
  type ErrorDetails,
  GoneError,
  InvalidRequestError,
  NameTakenError,
  NotFoundError,
  ProhibitedNameError,
  RetryableError,
  TooManyRequestsError,
  UnauthorizedError,
  UnavailableError,
  UnexpectedAnswerError,
} from './client/errors.ts';
export type { RequestObserver } from './client/requests.ts';
export type { CloudWorld } from './client/world.ts';
