/** Error codes of the testbed itself, as opposed to the code under test. */
export type TestbedErrorCode =
  | 'ASSET_UNAVAILABLE'
  | 'BUILD_FAILED'
  | 'COMMAND_FAILED'
  | 'DISK_FULL'
  | 'FOLDER_BUSY'
  | 'FOLDER_UNUSABLE'
  | 'PART_DIED'
  | 'PART_NOT_READY'
  | 'PORT_BUSY'
  | 'REQUEST_FAILED';

/** Error with a message for the user: what failed, where, and what to do about it. */
export class TestbedError extends Error {
  readonly code: TestbedErrorCode;

  constructor(code: TestbedErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TestbedError';
    this.code = code;
  }
}
