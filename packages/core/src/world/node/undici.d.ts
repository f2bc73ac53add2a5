declare module 'undici/lib/dispatcher/pool.js' {
  // biome-ignore lint/style/noDefaultExport: undici's file has a default export
  export { Pool as default } from 'undici';
}
