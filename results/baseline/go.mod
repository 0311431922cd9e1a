// The reference results are a module of their own, so that nobody who imports quotabench downloads them.
module github.com/quotabench/quotabench/results/baseline

go 1.26.0
