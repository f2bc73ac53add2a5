export interface Credentials {
  readonly username: string;
  readonly password: string;
}
