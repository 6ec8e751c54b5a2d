/** The calls of `systeminformation` that doctor makes, with the fields that it reads. */
declare module 'systeminformation' {
  type FileSystem = { readonly mount: string; readonly size: number; readonly available: number }
  const calls: {
    osInfo(): Promise<{ readonly platform: string; readonly arch: string; readonly hostname: string }>
    mem(): Promise<{ readonly total: number; readonly available: number }>
    fsSize(): Promise<readonly FileSystem[]>
  }
  // oxlint-disable-next-line import/no-default-export -- the form of a CommonJS module
  export default calls
}
