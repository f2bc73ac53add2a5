declare module 'undici/lib/dispatcher/pool.js' {
  // biome-ignore lint/style/noDefaultExport: as undici's own file has it
  export { Pool as default } from 'undici';
}
