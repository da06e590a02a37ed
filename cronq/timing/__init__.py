"""WHEN is a job due? Pure: values in, values out."""
