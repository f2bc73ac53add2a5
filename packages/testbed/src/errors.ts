/** Every way in which the testbed itself (not the code under test) can fail. */
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

/** An error whose message is a sentence for the person at the terminal: what failed, where, and what to do. */
export class TestbedError extends Error {
  readonly code: TestbedErrorCode;

  constructor(code: TestbedErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TestbedError';
    this.code = code;
  }
}
