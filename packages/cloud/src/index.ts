/** The private cloud's client. The server is in `@vmwright/cloud/server`: who talks to it does not load it. */
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
  type AnswerDetails,
  CloudError,
  ConnectionError,
  GoneError,
  InvalidRequestError,
  LaterError,
  NameTakenError,
  NotFoundError,
  ProhibitedNameError,
  ServerError,
  TooManyRequestsError,
  UnauthorizedError,
  UnavailableError,
  UnexpectedAnswerError,
} from './client/errors.ts';
export type { RequestObserver } from './client/requests.ts';
export type { CloudWorld } from './client/world.ts';
