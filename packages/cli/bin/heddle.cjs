#!/usr/bin/env node
"use strict";
process.stderr.write("heddle: not built\n");
process.exitCode = 8;
